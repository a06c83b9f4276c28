//! [`identity`]: the identity of a data directory, which its backups share.

use std::hash::Hasher;
use std::path::Path;

use siphasher::sip::SipHasher13;

use crate::doctor::Directory;
use crate::error::OpenError;
use crate::meta;
use crate::shards_file;

/// Returns the identity of the data directory at this path: 16 hex digits that never change. The backups of the directory, and the
/// directories that are restored from them, have the same identity. `None` if the directory at this path is no data directory. The identity
/// is a hash of the secret in `meta`, or in `shards` if there are several shards, and does not reveal the secret. The call changes nothing and locks nothing.
///
/// # Errors
/// `meta` is damaged, missing beside data, or of a format that is not read; or the folder of the shard is missing; or the directory cannot
/// be read.
pub fn identity(path: &Path) -> Result<Option<String>, OpenError> {
    let mut directory = Directory::new(path)?.of_maker();
    if let Some(secret) = shards_file::secret_of(&mut directory)? {
        return Ok(Some(of(&secret)));
    }
    let meta = meta::find(&mut directory)?;
    Ok(meta.map(|meta| of(&meta.secret)))
}

fn of(secret: &[u8; 16]) -> String {
    let mut hasher = SipHasher13::new_with_key(secret);
    // The prefix makes the identity differ from the other hashes that have the same secret as their key.
    hasher.write(b"identity of the directory");
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_disk::FsDisk;
    use crate::meta::Meta;
    use crate::options::StoreOptions;

    #[test]
    fn a_directory_keeps_its_identity_and_another_one_has_another() {
        let dir = tempfile::tempdir().expect("a directory");
        let made = |name: &str, secret| {
            let path = dir.path().join(name);
            let mut disk = FsDisk::new(&path).expect("made");
            let made = meta::create(&mut disk, &StoreOptions::new(secret)).expect("made");
            let first = identity(&path).expect("readable");
            // A store writes `meta` again once its first log file is durable.
            meta::write(&mut disk, Meta { has_log: true, ..made }).expect("written");
            assert_eq!(identity(&path).expect("readable"), first);
            first.expect("there is one")
        };
        let (one, other) = (made("one", [1; 16]), made("other", [2; 16]));
        assert!(one != other && one.len() == 16, "{one} {other}");
        std::fs::create_dir(dir.path().join("empty")).expect("made");
        assert_eq!(identity(&dir.path().join("empty")).expect("readable"), None);
        identity(&dir.path().join("absent")).expect_err("it is not there");
        std::fs::write(dir.path().join("one/meta"), b"?").expect("harmed");
        identity(&dir.path().join("one")).expect_err("it is damaged");
    }
}
