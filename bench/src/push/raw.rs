//! Jobs for beanstalkd through a raw socket, without tasks and channels. No caller waits for an answer. Their rate is the limit of the server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, ensure};

use super::progress::Progress;
use super::sinks::PLACE;

/// Keeps `in_flight` puts under way until all are answered.
pub(super) fn put_all(
    address: SocketAddr,
    in_flight: usize,
    payload: &[u8],
    progress: &Progress,
) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).context("connect to beanstalkd")?;
    stream.set_nodelay(true)?;
    stream.write_all(format!("use {PLACE}\r\n").as_bytes())?;
    let (mut bytes, mut piece, mut under_way, mut line) = (Vec::new(), [0; 64 << 10], 0, Vec::new());
    let mut is_used = false;
    loop {
        while under_way < in_flight && progress.take().is_some() {
            bytes.extend_from_slice(format!("put 1024 0 60 {}\r\n", payload.len()).as_bytes());
            bytes.extend_from_slice(payload);
            bytes.extend_from_slice(b"\r\n");
            under_way += 1;
        }
        if under_way == 0 {
            return Ok(());
        }
        stream.write_all(&bytes)?;
        bytes.clear();
        let count = stream.read(&mut piece)?;
        ensure!(count > 0, "beanstalkd closed the connection");
        for &byte in &piece[..count] {
            line.push(byte);
            if byte != b'\n' {
                continue;
            }
            if is_used {
                ensure!(line.starts_with(b"INSERTED "), "{}", String::from_utf8_lossy(&line));
                under_way -= 1;
                progress.confirm();
            }
            is_used = true;
            line.clear();
        }
    }
}
