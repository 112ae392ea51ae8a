//! The program on the way out of the NICs: attached as long as there is anything to forward.

use std::path::Path;

use aya::Ebpf;

use super::super::attach::{Attached, attach_egress};
use super::super::error::DataplaneError;
use super::super::netlink::Interface;

/// Where it is attached.
pub struct Egress {
    attached: Vec<(u32, Attached)>,
    /// Why the program cannot be used, if so.
    unusable: Option<String>,
    /// Why it is not on a NIC where it should be, if so.
    refused: Option<String>,
}

impl Egress {
    /// Not attached yet; `loaded` says why it cannot be used, if so.
    pub fn new(loaded: Result<(), String>) -> Self {
        Egress {
            attached: Vec::new(),
            unusable: loaded.err(),
            refused: None,
        }
    }

    /// Why answers of Endpoints on this node cannot be translated, if so.
    pub fn refused(&self) -> Option<&str> {
        self.unusable.as_deref().or(self.refused.as_deref())
    }

    /// Attaches it to these NICs and to no other; with `keep` so that it outlives this process. Gives
    /// whether it runs on all.
    pub fn follow(&mut self, ebpf: &mut Ebpf, nics: &[Interface], dir: &Path, keep: bool) -> bool {
        if self.unusable.is_some() {
            return false;
        }
        self.refused = self
            .attach(ebpf, nics, dir, keep)
            .err()
            .map(|it| it.to_string());
        self.refused.is_none() && !nics.is_empty()
    }

    fn attach(
        &mut self,
        ebpf: &mut Ebpf,
        nics: &[Interface],
        dir: &Path,
        keep: bool,
    ) -> Result<(), DataplaneError> {
        let before = std::mem::take(&mut self.attached);
        let is_there = |index: u32| nics.iter().any(|nic| nic.index == index);
        let (stay, go): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|(index, _)| is_there(*index));
        self.attached = stay;
        let mut failed = None;
        for (_, attached) in go {
            failed = attached.release().err().or(failed);
        }
        for nic in nics {
            if self.attached.iter().all(|(index, _)| *index != nic.index) {
                let attached = attach_egress(ebpf, nic, dir)?;
                self.attached.push((nic.index, attached));
            }
        }
        if keep {
            for (index, mut attached) in std::mem::take(&mut self.attached) {
                attached.move_to(dir);
                match attached.keep() {
                    Ok(attached) => self.attached.push((index, attached)),
                    Err(error) => failed = Some(error),
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
