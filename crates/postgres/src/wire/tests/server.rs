//! [`Server`]: a PostgreSQL of its own for the tests, in a temporary directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tickwheel_testing::HANG_TIME;

use super::super::connection::Connection;
use super::super::environment::Environment;
use super::super::error::OpenError;
use super::super::transport::now;
use super::super::url::DatabaseUrl;

/// The users: `NAME@how`. A password is `secret`.
const RULES: &str = "\
local   all admin                   trust
local   all clear                   password
local   all scram                   scram-sha-256
host    all trusted   127.0.0.1/32  trust
host    all md5       127.0.0.1/32  md5
host    all clear     127.0.0.1/32  password
host    all scram     127.0.0.1/32  scram-sha-256
hostssl all certified 127.0.0.1/32  cert
hostnossl all plain   127.0.0.1/32  trust
";

const USERS: &str = "\
CREATE ROLE trusted LOGIN; CREATE ROLE certified LOGIN; CREATE ROLE plain LOGIN; CREATE ROLE stranger LOGIN;
SET password_encryption = 'md5'; CREATE ROLE md5 LOGIN PASSWORD 'secret';
SET password_encryption = 'scram-sha-256';
CREATE ROLE clear LOGIN PASSWORD 'secret'; CREATE ROLE scram LOGIN PASSWORD 'secret';
GRANT pg_signal_backend TO trusted; GRANT ALL ON SCHEMA public TO trusted;
";

/// A PostgreSQL that ends with its last user.
pub(super) struct Server {
    child: Child,
    pub(super) port: u16,
    directory: TempDir,
}

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

impl Server {
    /// Returns the server that the tests share; `None`: PostgreSQL is not installed, and that has been said.
    pub(super) fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return Some(server);
        }
        let server = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&server);
        Some(server)
    }

    fn start() -> Option<Self> {
        let binaries = tickwheel_testing::postgres()?;
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // The server refuses to run as root.
        let user = rustix::process::geteuid().is_root().then(postgres_user);
        let own = |path: &Path| {
            if let Some((uid, gid)) = user {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        };
        own(directory.path());
        own(&data);
        let command = |name: &str| {
            let mut command = Command::new(binaries.join(name));
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            command.current_dir(directory.path()).stdin(Stdio::null());
            command
        };
        let made = command("initdb")
            .args([
                "-A",
                "scram-sha-256",
                "--auth-local=trust",
                "-U",
                "admin",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));

        make_certificates(directory.path());
        for name in ["server.crt", "server.key"] {
            own(&directory.path().join(name));
        }
        let port = tickwheel_testing::free_port();
        let path = directory.path().display();
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{path}'\nfsync = off\n\
             max_connections = 40\nssl = on\nssl_cert_file = '{path}/server.crt'\nssl_key_file = '{path}/server.key'\n\
             ssl_ca_file = '{path}/ca.crt'\n"
        );
        let mut written = fs::read_to_string(data.join("postgresql.conf")).unwrap();
        written.push_str(&settings);
        fs::write(data.join("postgresql.conf"), written).unwrap();
        fs::write(data.join("pg_hba.conf"), RULES).unwrap();

        let log = fs::File::create(directory.path().join("log")).unwrap();
        let child =
            command("postgres").arg("-D").arg(&data).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let server = Self { child, port, directory };
        let limit = now() + HANG_TIME;
        let mut admin = loop {
            match server.open(&server.socket_url("admin", "postgres")) {
                Ok(connection) => break connection,
                Err(OpenError::Unreachable(_)) if now() < limit => std::thread::yield_now(),
                Err(error) => panic!("{error}; {}", server.log()),
            }
        };
        admin.simple(USERS, Some(limit)).unwrap();
        Some(server)
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The URL over TCP, by the name or address of the host.
    pub(super) fn url(&self, login: &str, host: &str, parameters: &str) -> String {
        format!("postgres://{login}@{host}:{}/postgres?{parameters}", self.port)
    }

    pub(super) fn socket_url(&self, login: &str, database: &str) -> String {
        let host = self.directory.path().display().to_string().replace('/', "%2F");
        format!("postgres://{login}@{host}:{}/{database}", self.port)
    }

    pub(super) fn open(&self, url: &str) -> Result<Connection, OpenError> {
        open(url)
    }

    /// A connection of a plain user over TCP.
    pub(super) fn connection(&self) -> Connection {
        self.open(&self.url("trusted", "127.0.0.1", "")).unwrap()
    }
}

pub(super) fn open(url: &str) -> Result<Connection, OpenError> {
    let url = DatabaseUrl::parse(url, &Environment::default()).unwrap();
    Connection::open(
        &url,
        "wire tests",
        &[("idle_in_transaction_session_timeout", "1min")],
        now() + HANG_TIME,
    )
}

pub(super) fn limit() -> Option<Instant> {
    Some(now() + HANG_TIME)
}

impl Drop for Server {
    /// Stops at once: SIGQUIT ends the processes of all sessions, too.
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = self.child.wait();
    }
}

/// The numbers of the user `postgres`.
fn postgres_user() -> (u32, u32) {
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("postgres:")).expect("the user postgres");
    let mut numbers = line.split(':').skip(2).map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// An authority, a certificate of the server for `localhost`, one of a client, and an authority that signed nothing.
fn make_certificates(directory: &Path) {
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(
            &path,
            fs::Permissions::from_mode(if name.ends_with("key") { 0o600 } else { 0o644 }),
        )
        .unwrap();
    };
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let key = KeyPair::generate().unwrap();
    let params = authority("the authority");
    write("ca.crt", params.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(params, key);
    write("other.crt", authority("another").self_signed(&KeyPair::generate().unwrap()).unwrap().pem());

    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    write("server.crt", params.signed_by(&key, &issuer).unwrap().pem());
    write("server.key", key.serialize_pem());

    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "certified");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    write("client.crt", params.signed_by(&key, &issuer).unwrap().pem());
    write("client.key", key.serialize_pem());
}
