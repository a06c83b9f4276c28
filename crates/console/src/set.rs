//! The values that are computed from the files once: the hash of the version, and the compressed forms.

use std::io::Write;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::assets::{ASSETS, Asset, INDEX};

/// The values that are computed from the files.
pub(crate) struct Set {
    /// The hash of all files, in hex.
    pub(crate) version: String,
    /// The files by gzip, in the order of the table.
    pub(crate) zipped: Vec<Vec<u8>>,
}

/// Makes it at the first call.
pub(crate) fn set() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(|| Set { version: hash(), zipped: ASSETS.iter().map(zip).collect() })
}

fn hash() -> String {
    let mut hash = Sha256::new();
    hash.update(INDEX);
    for asset in ASSETS {
        hash.update(asset.path.len().to_be_bytes());
        hash.update(asset.path);
        hash.update(asset.bytes.len().to_be_bytes());
        hash.update(asset.bytes);
    }
    hex(&hash.finalize())
}

/// The first 8 bytes of a hash in hex.
pub(crate) fn hex(hash: &[u8]) -> String {
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn zip(asset: &Asset) -> Vec<u8> {
    let mut zip = GzEncoder::new(Vec::new(), Compression::best());
    zip.write_all(asset.bytes).and_then(|()| zip.finish()).expect("memory takes all")
}
