//! What one worker remembers for the guards of all Locations.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::sync::watch;

use super::external::{ASKING_MAX, Verdict};
use super::jwt::WAITING_MAX;
use crate::auth::{
    Credentials, Digest, Digester, KeySet, NoRandomness, Recent, TokenError, Users, Verified,
};
use crate::model::{BackendKey, Jwt, subscriber};
use crate::proxy::hasher::Hasher;

/// How many good passwords are remembered, and twice at most; as many wrong ones, apart, so that a
/// flood of these makes nobody wait.
const REMEMBERED: usize = 4096;

/// How many tokens are remembered, and twice at most.
const TOKENS: usize = 4096;

/// How many answers of services are remembered, and twice at most.
const VERDICTS: usize = 4096;

/// How many passwords of one client are being checked at once. A browser has six connections, and
/// comes with one password.
const AT_ONCE: u32 = 4;

/// See the module's text.
pub struct Gatekeeper {
    digester: Digester,
    hasher: Arc<Hasher>,
    passwords: Rc<RefCell<Passwords>>,
    tokens: RefCell<Recent<Rc<Verified>>>,
    waiting: Rc<Cell<u32>>,
    verdicts: RefCell<Recent<Verdict>>,
    asking: Rc<RefCell<HashMap<BackendKey, u32, RandomState>>>,
}

/// One of the requests that ask a service.
pub(super) struct AskingPlace {
    asking: Rc<RefCell<HashMap<BackendKey, u32, RandomState>>>,
    service: BackendKey,
}

impl Drop for AskingPlace {
    fn drop(&mut self) {
        let mut asking = self.asking.borrow_mut();
        if let Some(now) = asking.get_mut(&self.service) {
            *now -= 1;
            if *now == 0 {
                asking.remove(&self.service);
            }
        }
    }
}

/// One of the requests that wait for keys.
pub(super) struct Waiting(Rc<Cell<u32>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

struct Passwords {
    good: Recent<()>,
    wrong: Recent<()>,
    /// Those that are being checked; each says what came of it.
    checking: HashMap<Digest, watch::Receiver<Option<bool>>, RandomState>,
    by_client: HashMap<IpAddr, u32, RandomState>,
}

/// Why a password was not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unchecked {
    /// Its client has too many others being checked.
    Flood,
    /// All clients together have.
    Busy,
}

impl Gatekeeper {
    /// Passwords are checked by the threads of `hasher`.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn new(hasher: Arc<Hasher>) -> Result<Self, NoRandomness> {
        Ok(Gatekeeper {
            digester: Digester::new()?,
            hasher,
            passwords: Rc::new(RefCell::new(Passwords {
                good: Recent::new(REMEMBERED),
                wrong: Recent::new(REMEMBERED),
                checking: HashMap::default(),
                by_client: HashMap::default(),
            })),
            tokens: RefCell::new(Recent::new(TOKENS)),
            waiting: Rc::default(),
            verdicts: RefCell::new(Recent::new(VERDICTS)),
            asking: Rc::default(),
        })
    }

    /// Whether the password is right, by what is remembered, or by another thread. A password is
    /// checked once, however many requests come with it meanwhile.
    pub(super) async fn check(
        &self,
        users: &Arc<Users>,
        credentials: Credentials,
        client: IpAddr,
    ) -> Result<bool, Unchecked> {
        let Credentials { user, password } = &credentials;
        let text = users.text(user);
        let digest = [user.as_bytes(), password, text.as_bytes()];
        let digest = self.digester.digest(&digest);
        if let Some(known) = self.passwords.borrow_mut().known(&digest) {
            return Ok(known);
        }
        let checking = self.passwords.borrow().checking.get(&digest).cloned();
        let mut told = match checking {
            Some(told) => told,
            None => self.begin(digest, users.clone(), credentials, client)?,
        };
        let told = told.wait_for(Option::is_some).await;
        told.ok().and_then(|it| *it).ok_or(Unchecked::Busy)
    }

    /// The token with its signature checked by these keys, remembered if it was before. Whether it
    /// holds now, and here, is asked anew each time.
    pub(super) fn verify(
        &self,
        token: &str,
        keys: &KeySet,
        jwt: &Jwt,
    ) -> Result<Rc<Verified>, TokenError> {
        let digest = [token.as_bytes(), &keys.id().to_le_bytes()];
        let digest = self.digester.digest(&digest);
        if let Some(known) = self.tokens.borrow_mut().get(&digest) {
            return Ok(known);
        }
        let verified = Rc::new(Verified::check(token, keys, jwt)?);
        self.tokens.borrow_mut().put(digest, verified.clone());
        Ok(verified)
    }

    /// A digest of what an answer depends on.
    pub(super) fn digest(&self, parts: &[&[u8]]) -> Digest {
        self.digester.digest(parts)
    }

    /// What a service has said.
    pub(super) fn verdict(&self, digest: &Digest) -> Option<Verdict> {
        self.verdicts.borrow_mut().get(digest)
    }

    /// Remembers what a service says.
    pub(super) fn remember(&self, digest: Digest, verdict: Verdict) {
        self.verdicts.borrow_mut().put(digest, verdict);
    }

    /// A place among the requests that ask a service; none when there are too many.
    pub(super) fn ask(&self, service: &BackendKey) -> Option<AskingPlace> {
        let mut asking = self.asking.borrow_mut();
        let now = asking.entry(service.clone()).or_default();
        if *now >= ASKING_MAX {
            return None;
        }
        *now += 1;
        Some(AskingPlace {
            asking: self.asking.clone(),
            service: service.clone(),
        })
    }

    /// A place among the requests that wait for keys; none when there are too many.
    pub(super) fn wait(&self) -> Option<Waiting> {
        let waiting = self.waiting.get();
        (waiting < WAITING_MAX).then(|| {
            self.waiting.set(waiting + 1);
            Waiting(self.waiting.clone())
        })
    }

    fn begin(
        &self,
        digest: Digest,
        users: Arc<Users>,
        Credentials { user, password }: Credentials,
        client: IpAddr,
    ) -> Result<watch::Receiver<Option<bool>>, Unchecked> {
        let client = subscriber(client);
        let mut passwords = self.passwords.borrow_mut();
        let of_client = passwords.by_client.get(&client).copied().unwrap_or(0);
        if of_client >= AT_ONCE {
            return Err(Unchecked::Flood);
        }
        let checked = self.hasher.run(move || users.admit(&user, &password));
        let checked = checked.map_err(|_| Unchecked::Busy)?;
        passwords.by_client.insert(client, of_client + 1);
        let (tell, told) = watch::channel(None);
        passwords.checking.insert(digest, told.clone());
        let shared = self.passwords.clone();
        // Goes on when the client leaves: the thread works in any case, and what it finds is kept.
        tokio::task::spawn_local(async move {
            let good = checked.await.ok();
            shared.borrow_mut().settle(&digest, client, good);
            tell.send_replace(good);
        });
        Ok(told)
    }
}

impl Passwords {
    fn known(&mut self, digest: &Digest) -> Option<bool> {
        if self.good.get(digest).is_some() {
            return Some(true);
        }
        self.wrong.get(digest).map(|()| false)
    }

    fn settle(&mut self, digest: &Digest, client: IpAddr, good: Option<bool>) {
        self.checking.remove(digest);
        if let Some(of_client) = self.by_client.get_mut(&client) {
            *of_client -= 1;
            if *of_client == 0 {
                self.by_client.remove(&client);
            }
        }
        match good {
            Some(true) => self.good.put(*digest, ()),
            Some(false) => self.wrong.put(*digest, ()),
            None => {}
        }
    }
}
