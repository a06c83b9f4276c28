//! The receiver of webhooks: it reads requests and answers 204, and does nothing else.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const HEAD_END: &[u8] = b"\r\n\r\n";
const LENGTH: &[u8] = b"content-length: ";

/// Serves at this address until the process is killed. The receiver has one thread, so that the sender has the other core.
pub(crate) fn receive(address: SocketAddr) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(serve(stream));
        }
    })
}

async fn serve(mut stream: TcpStream) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        while let Some(request) = whole(&bytes) {
            bytes.drain(..request);
            stream.write_all(ANSWER).await?;
        }
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&piece[..count]);
    }
}

/// Returns the length of the request at the beginning; `None`: it is not whole yet.
fn whole(bytes: &[u8]) -> Option<usize> {
    let find = |part: &[u8]| bytes.windows(part.len()).position(|window| window == part);
    let body = find(HEAD_END)? + HEAD_END.len();
    let from = find(LENGTH)? + LENGTH.len();
    let digits = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    (bytes.len() >= body + length).then_some(body + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_with_its_body() {
        let request = b"POST / HTTP/1.1\r\ncontent-length: 12\r\na: b\r\n\r\n123456789012";
        assert_eq!(whole(&[request.as_slice(), b"POST"].concat()), Some(request.len()));
        for cut in [0, 20, request.len() - 13, request.len() - 1] {
            assert_eq!(whole(&request[..cut]), None, "{cut}");
        }
    }
}
