//! Going through records in the order of their keys (design §15).
//!
//! What cannot be read is passed over and counted; the next page begins behind the last key, not behind the last record.
//!
//! Owns: these walks. Must not know: what is done with a record.

use crate::keys;
use crate::kv::{KvError, Pair};
use crate::records::{PAGE, Records, tag};
use artoo_protocol::MegramId;
use artoo_protocol::message::{Level, Megram};
use std::ops::ControlFlow;

impl Records {
    /// All records of a group, by id, also those that no longer count.
    pub fn group(&self, space: &str, entity: &str) -> Result<Vec<Megram>, KvError> {
        self.indexed(&keys::group(&tag(space), &tag(entity)))
    }

    /// All records of a level, by id.
    pub fn level(&self, level: Level) -> Result<Vec<Megram>, KvError> {
        self.indexed(&keys::levels(level))
    }

    /// Every record, by id.
    pub fn all(&self) -> Result<Vec<Megram>, KvError> {
        self.indexed(keys::RECORDS)
    }

    /// Every record that can be read in the order of ids, `limit` of them as long as there are so many, beginning after `after`.
    pub fn page(&self, after: Option<&MegramId>, limit: usize) -> Result<Vec<Megram>, KvError> {
        let mut after = after.map(|id| keys::record(id).into_bytes());
        let mut page = Vec::new();
        while page.len() < limit {
            let wanted = limit - page.len();
            let pairs = self.kv().scan(keys::RECORDS.as_bytes(), after.as_deref(), wanted)?;
            page.extend(self.get_many(&ids_of(&pairs))?);
            after = pairs.last().map(|(key, _)| key.clone());
            if pairs.len() < wanted {
                break;
            }
        }
        Ok(page)
    }

    /// Shows every record that can be read, by id, until `see` breaks off. Each that is damaged is counted once
    /// ([`Records::damaged`]), and hides none behind it.
    pub fn each(&self, see: &mut dyn FnMut(Megram) -> ControlFlow<()>) -> Result<(), KvError> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let pairs = self.kv().scan(keys::RECORDS.as_bytes(), after.as_deref(), PAGE)?;
            for megram in self.get_many(&ids_of(&pairs))? {
                if see(megram).is_break() {
                    return Ok(());
                }
            }
            after = pairs.last().map(|(key, _)| key.clone());
            if pairs.len() < PAGE {
                return Ok(());
            }
        }
    }

    fn indexed(&self, prefix: &str) -> Result<Vec<Megram>, KvError> {
        let mut found = Vec::new();
        self.each_page(prefix, &mut |page| {
            found.extend(self.get_many(&ids_of(&page))?);
            Ok(())
        })?;
        Ok(found)
    }

    pub(crate) fn each_page(
        &self,
        prefix: &str,
        on_page: &mut dyn FnMut(Vec<Pair>) -> Result<(), KvError>,
    ) -> Result<(), KvError> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.kv().scan(prefix.as_bytes(), after.as_deref(), PAGE)?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|(key, _)| key.clone());
            if !page.is_empty() {
                on_page(page)?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

fn ids_of(pairs: &[Pair]) -> Vec<MegramId> {
    pairs.iter().filter_map(|(key, _)| keys::id_of(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{Batch, InMemoryKv, Kv};
    use crate::records::Edit;
    use crate::testing::{at, megram};
    use std::sync::Arc;

    /// 300 damaged records among 700: more than a page of them in one stretch, and the last ones.
    #[test]
    fn damaged_records_hide_none_behind_them_and_are_counted_once() {
        let kv = Arc::new(InMemoryKv::new());
        let records = Records::open(kv.clone()).unwrap();
        let id = |number: usize| format!("{number:04}");
        let edits: Vec<Edit> = (0..700)
            .map(|number| Edit::Store(megram(&id(number), "tool:shell", "path:/a", 0.5, 1.0)))
            .collect();
        records.commit(&edits, at()).unwrap();
        let mut batch = Batch::new();
        let damaged: Vec<usize> = (100..390).chain(690..700).collect();
        for number in &damaged {
            batch.put(keys::record(&MegramId::new(id(*number))), "not JSON");
        }
        kv.apply(batch).unwrap();
        let records = Records::open(kv).unwrap();
        let mut seen = Vec::new();
        let mut see = |megram: Megram| {
            seen.push(megram.id.as_str().parse::<usize>().unwrap());
            ControlFlow::Continue(())
        };
        records.each(&mut see).unwrap();
        let readable: Vec<usize> = (0..700).filter(|number| !damaged.contains(number)).collect();
        assert_eq!(seen, readable);
        assert_eq!(
            (records.damaged(), records.take_damaged(), records.damaged()),
            (300, 300, 0)
        );
        let page = records.page(Some(&MegramId::new("0099")), 10).unwrap();
        let ids: Vec<&str> = page.iter().map(|megram| megram.id.as_str()).collect();
        assert_eq!((ids.len(), ids[0], ids[9]), (10, "0390", "0399"));
        let mut count = 0;
        let mut see = |_| {
            count += 1;
            if count == 7 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        records.each(&mut see).unwrap();
        assert_eq!(count, 7);
    }
}
