//! What a queue's owner configured, as a line of an export.

use super::parts::{flag, instant_option, text, write_instant};
use crate::bad_request::{BadRequest, inside};
use crate::json::{Members, Shape};
use crate::settings::SettingsBody;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

const SHAPE: Shape =
    Shape { known: &["queue", "settings", "paused", "paused_until", "draining"], later: &[], elsewhere: &[] };

/// The settings of a queue, and whether it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportQueue {
    /// Its name.
    pub queue: String,
    /// How it hands its tasks out.
    pub settings: SettingsBody,
    /// Whether nothing is leased.
    pub paused: bool,
    /// When the pause ends, ms since 1970; `None` with `paused`: until it is resumed.
    pub paused_until_ms: Option<i64>,
    /// Whether no task is added.
    pub draining: bool,
}

impl ExportQueue {
    pub(super) fn of(raw: &RawValue) -> Result<Self, BadRequest> {
        let members = Members::of_value(raw, &SHAPE, "write an object")?;
        let settings = members.get("settings").map(|raw| {
            let settings = SettingsBody::parse(raw.get().as_bytes());
            settings.map_err(|refused| inside("settings", refused))
        });
        let (paused, paused_until_ms) =
            (flag(&members, "paused")?, instant_option(&members, "paused_until")?);
        if paused_until_ms.is_some() && !paused {
            let what = "means nothing without `\"paused\": true`";
            return Err(BadRequest::member("paused_until", what, "leave it out, or add `\"paused\": true`"));
        }
        Ok(Self {
            queue: text(&members, "queue", "close")?,
            settings: settings.transpose()?.unwrap_or_default(),
            paused,
            paused_until_ms,
            draining: flag(&members, "draining")?,
        })
    }
}

impl Serialize for ExportQueue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("settings", &self.settings)?;
        map.serialize_entry("paused", &self.paused)?;
        write_instant(&mut map, "paused_until", self.paused_until_ms)?;
        map.serialize_entry("draining", &self.draining)?;
        map.end()
    }
}
