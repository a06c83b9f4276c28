//! [`Members`]: the folders of the shards below a root, and what each of them says about itself.

use std::path::{Path, PathBuf};

use tickwheel_engine::ShardId;

use crate::disk::Disk;
use crate::doctor::Directory;
use crate::error::OpenError;
use crate::layout::{HEADER_BYTES, META, SHARD, SHARDS, UNFINISHED_MARK, folder_of, is_folder_name};
use crate::mend::read_mended;
use crate::meta::Meta;
use crate::options::ClockMode;
use crate::shards_file::{Content, content_of};

/// A root of several shards as it is found, damaged or not.
#[derive(Debug)]
pub struct Members {
    pub(crate) path: PathBuf,
    /// The content of the file `shards`, with one damaged byte put right if that is possible; or the reason why there is none.
    pub(crate) content: Result<Content, OpenError>,
    /// The offset of the damaged byte of the file `shards` that was put right.
    pub(crate) mended_at: Option<u64>,
    /// The number of shards, from the file `shards` or else from `meta` of the members.
    pub(crate) shards: u32,
    /// In the order of their names.
    pub(crate) folders: Vec<Folder>,
}

/// A folder with a name of four digits below a root.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) name: String,
    /// The content of the `meta` in it; `None` if there is none, or if it cannot be read.
    pub(crate) meta: Option<Meta>,
}

impl Folder {
    /// Whether this is the folder of the shard by its name.
    pub(crate) fn is_named(&self, shard: ShardId) -> bool {
        self.name == folder_of(shard)
    }

    /// Returns the shard that the `meta` in the folder names.
    pub(crate) fn says(&self) -> Option<ShardId> {
        self.meta.map(|meta| meta.shard)
    }
}

impl Members {
    /// Looks at the directory `path`. `None`: the place is no root of several shards. A place without the file `shards` is such a root if it
    /// has neither `meta` nor the folder of a shard's data, and the `meta` of a folder in it names one of several shards. Nothing is changed.
    ///
    /// # Errors
    /// The directory is unfinished, or cannot be read; or the number of shards cannot be known; or a later version wrote the file `shards`.
    pub fn find(path: impl Into<PathBuf>) -> Result<Option<Self>, OpenError> {
        let path = path.into();
        let mut directory = Directory::new(&path)?;
        let names = directory.list("")?;
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        if !has(SHARDS) && (has(META) || has(SHARD)) {
            return Ok(None);
        }
        let mut folders = Vec::new();
        for name in names.iter().filter(|name| is_folder_name(name) && path.join(name).is_dir()) {
            let meta = meta_in(&path.join(name));
            folders.push(Folder { name: name.clone(), meta });
        }
        folders.sort_by(|one, other| one.name.cmp(&other.name));
        let voted = most_named(&folders);
        if !has(SHARDS) && voted.is_none() {
            return Ok(None);
        }
        if has(UNFINISHED_MARK) {
            return Err(OpenError::Unfinished);
        }
        let (content, mended_at) = read(&mut directory, has(SHARDS))?;
        let (content, shards) = match (content, voted) {
            (Ok(content), _) => (Ok(content), content.shards),
            (Err(error), Some(voted)) => (Err(error), voted),
            (Err(error), None) => return Err(error),
        };
        Ok(Some(Self { path, content, mended_at, shards, folders }))
    }

    /// Returns the directory above the folders.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all shards that the root has, in the order of their numbers.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        let count = self.shards;
        (0..count).filter_map(move |number| ShardId::new(number, count))
    }

    /// Returns the name of the folder that has this shard, as its `meta` says; or the folder with the name of the shard if its `meta` cannot
    /// be read. `None`: the shard is missing.
    #[must_use]
    pub fn folder(&self, shard: ShardId) -> Option<&str> {
        let named = self.folders.iter().find(|folder| folder.is_named(shard));
        let has_it = |folder: &&Folder| folder.says() == Some(shard);
        let found = named
            .filter(has_it)
            .or_else(|| self.folders.iter().find(has_it))
            .or_else(|| named.filter(|folder| folder.meta.is_none()));
        found.map(|folder| folder.name.as_str())
    }

    /// Returns the clock of the data: that of the file `shards`, or else of the first member that has one.
    #[must_use]
    pub fn clock(&self) -> Option<ClockMode> {
        let of_members = || self.folders.iter().find_map(|folder| folder.meta.map(|meta| meta.clock));
        self.content.as_ref().ok().map(|content| content.clock).or_else(of_members)
    }

    /// Returns facts about the root that are worth knowing after a salvage of it, as sentences. `has_identity`: the new directory has the
    /// identity of the root.
    #[must_use]
    pub fn notes(&self, has_identity: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if let Err(error) = &self.content {
            let why = match error {
                OpenError::Corrupt { what, .. } => what.clone(),
                other => other.to_string(),
            };
            notes.push(format!(
                "the file `{SHARDS}`: {why}; the number of shards ({}) is taken from the `{META}` of the members",
                self.shards
            ));
        }
        if !has_identity {
            notes.push("the new directory has another identity than the backups of this one".to_owned());
        }
        for shard in self.shards() {
            if let Some(folder) = self.folder(shard).filter(|folder| *folder != folder_of(shard)) {
                let new = folder_of(shard);
                notes.push(format!("the folder {folder} has {shard}, which is in the folder {new} now"));
            }
        }
        for (folder, shard) in self.strange() {
            let what = match shard {
                Some(shard) if shard.count() != self.shards => {
                    format!("has {shard} of another data directory")
                }
                Some(shard) => format!("has {shard} once more"),
                None => "has no shard of this directory".to_owned(),
            };
            notes.push(format!("the folder {folder} {what}, and was left out"));
        }
        notes
    }

    /// Returns the offset of the one damaged byte of the file `shards` that was put right while reading.
    #[must_use]
    pub fn mended_at(&self) -> Option<u64> {
        self.mended_at
    }

    /// Returns the folders that no shard of this root has, each with the shard that its `meta` names.
    pub fn strange(&self) -> impl Iterator<Item = (&str, Option<ShardId>)> {
        let used: Vec<&str> = self.shards().filter_map(|shard| self.folder(shard)).collect();
        let others = self.folders.iter().filter(move |folder| !used.contains(&folder.name.as_str()));
        others.map(|folder| (folder.name.as_str(), folder.says()))
    }
}

/// Returns the number of shards that most members name, if one of them names more than one.
fn most_named(folders: &[Folder]) -> Option<u32> {
    let named = || folders.iter().filter_map(Folder::says).map(ShardId::count).filter(|count| *count > 1);
    named().max_by_key(|count| named().filter(|other| other == count).count())
}

/// Reads the `meta` of a member; `None` if it cannot be read. The examination or the salvage of the member tells why.
fn meta_in(path: &Path) -> Option<Meta> {
    let mut directory = Directory::new(path).ok()?;
    let mut bytes = [0; HEADER_BYTES + 1];
    let count = directory.read(META, 0, &mut bytes).ok()?;
    let read = Meta::from_bytes(&bytes[..count]).ok();
    let mended = || read_mended(&bytes[..count], |bytes| Meta::from_bytes(bytes).ok());
    read.or_else(|| mended().map(|mended| mended.value))
}

/// Reads the file `shards`, and the offset of its damaged byte if there is one and it can be put right.
fn read(
    directory: &mut Directory,
    is_there: bool,
) -> Result<(Result<Content, OpenError>, Option<u64>), OpenError> {
    if !is_there {
        return Ok((Err(OpenError::no_shards()), None));
    }
    let mut bytes = [0; HEADER_BYTES + 1];
    let count = directory.read(SHARDS, 0, &mut bytes)?;
    directory.close(SHARDS);
    let error = match content_of(&bytes[..count]) {
        Ok(content) => return Ok((Ok(content), None)),
        Err(error @ OpenError::NewerFormat { .. }) => return Err(error),
        Err(error) => error,
    };
    match read_mended(&bytes[..count], |bytes| content_of(bytes).ok()) {
        Some(mended) => Ok((Ok(mended.value), mended.at)),
        None => Ok((Err(error), None)),
    }
}
