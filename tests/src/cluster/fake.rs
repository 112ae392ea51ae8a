//! An API server that does as it is told, for what a real one does only on a bad day. It knows
//! objects by the path of their list; whoever changes them says which events that makes.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::backend::{Backend, Conversation, Seen};

/// The server; stops when dropped.
pub struct FakeApi {
    backend: Backend,
    state: Arc<Mutex<State>>,
    dir: TempDir,
}

#[derive(Default)]
struct State {
    /// By the path of the list, then by name.
    objects: HashMap<String, BTreeMap<String, Value>>,
    /// Answers that are given in place of true ones, by path; those of watches end in `?watch`.
    refusals: HashMap<String, u16>,
    /// Those who watch, by path.
    watches: HashMap<String, Vec<Sender<Value>>>,
    /// Lists, watches and reads so far, by path.
    counts: HashMap<String, usize>,
    version: u64,
}

impl FakeApi {
    /// One without objects.
    pub fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        let backend = Backend::scripted(move |conversation| {
            while let Some(request) = conversation.request() {
                if !answer(&shared, conversation, &request) {
                    return;
                }
            }
        });
        let dir = TempDir::new().expect("a temporary directory");
        FakeApi {
            backend,
            state,
            dir,
        }
    }

    /// A kubeconfig file for it.
    pub fn kubeconfig(&self) -> PathBuf {
        let path = self.dir.path().join("kubeconfig.yaml");
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": format!("http://{}", self.backend.addr())}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
            "users": [{"name": "fake", "user": {}}],
        });
        std::fs::write(&path, text.to_string()).expect("a file");
        path
    }

    /// Adds or replaces an object without a word to those who watch.
    pub fn put_silently(&self, list: &str, object: &Value) -> Value {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = state.version.to_string().into();
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let objects = state.objects.entry(list.to_owned()).or_default();
        objects.insert(name, object.clone());
        object
    }

    /// Adds or replaces an object, and tells those who watch.
    pub fn put(&self, list: &str, object: &Value) {
        let object = self.put_silently(list, object);
        self.tell(list, &json!({"type": "MODIFIED", "object": object}));
    }

    /// Removes an object without a word to those who watch.
    pub fn remove_silently(&self, list: &str, name: &str) {
        let mut state = self.state.lock().unwrap();
        if let Some(objects) = state.objects.get_mut(list) {
            objects.remove(name);
        }
    }

    /// Sends an event to those who watch a list.
    pub fn tell(&self, list: &str, event: &Value) {
        let mut state = self.state.lock().unwrap();
        let watches = state.watches.entry(list.to_owned()).or_default();
        watches.retain(|watch| watch.send(event.clone()).is_ok());
    }

    /// Ends the watches of a list.
    pub fn hang_up(&self, list: &str) {
        self.state.lock().unwrap().watches.remove(list);
    }

    /// Answers what is asked at a path (of a watch: with `?watch` at its end) with a status instead.
    pub fn refuse(&self, path: &str, status: u16) {
        let mut state = self.state.lock().unwrap();
        state.refusals.insert(path.to_owned(), status);
    }

    /// Answers truly again.
    pub fn relent(&self, path: &str) {
        self.state.lock().unwrap().refusals.remove(path);
    }

    /// How often something was asked at a path.
    pub fn asked(&self, path: &str) -> usize {
        let state = self.state.lock().unwrap();
        state.counts.get(path).copied().unwrap_or(0)
    }
}

/// Answers one request. False when the connection is over.
fn answer(state: &Mutex<State>, conversation: &mut Conversation<'_>, request: &Seen) -> bool {
    let target = request.target().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let is_watch = query
        .split('&')
        .any(|it| it == "watch=true" || it == "watch=1");
    let what = if is_watch {
        format!("{path}?watch")
    } else {
        path.to_owned()
    };
    let refusal = {
        let mut state = state.lock().unwrap();
        *state.counts.entry(what.clone()).or_default() += 1;
        state.refusals.get(&what).copied()
    };
    if let Some(code) = refusal {
        let reason = if code == 403 { "Forbidden" } else { "Expired" };
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure",
            "code": code, "reason": reason, "message": format!("told to say {code}"),
        });
        send(conversation, code, &body);
        return true;
    }
    if is_watch {
        let events = watch(state, path);
        stream(conversation, &events);
        return false;
    }
    let body = {
        let state = state.lock().unwrap();
        list(&state, path).or_else(|| one(&state, path))
    };
    match body {
        Some(body) => send(conversation, 200, &body),
        None => {
            let body = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "none"});
            send(conversation, 404, &body);
        }
    }
    true
}

/// A path without an object behind it is an empty list, if it looks like one.
fn list(state: &State, path: &str) -> Option<Value> {
    let known = state.objects.get(path);
    let is_list = known.is_some()
        || [
            "configmaps",
            "ingresses",
            "ingressclasses",
            "services",
            "endpointslices",
            "secrets",
            "nodes",
        ]
        .iter()
        .any(|it| path.ends_with(it));
    is_list.then(|| {
        let items: Vec<_> = known.into_iter().flat_map(BTreeMap::values).collect();
        json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": {"resourceVersion": state.version.to_string()},
            "items": items,
        })
    })
}

/// An object by the end of its path, below any list with its namespace or none.
fn one(state: &State, path: &str) -> Option<Value> {
    let (_, name) = path.rsplit_once('/')?;
    let (_, plural) = path
        .strip_suffix(name)?
        .trim_end_matches('/')
        .rsplit_once('/')?;
    let lists = state
        .objects
        .iter()
        .filter(|(list, _)| list.ends_with(plural));
    lists
        .filter_map(|(_, objects)| objects.get(name))
        .next()
        .cloned()
}

fn watch(state: &Mutex<State>, path: &str) -> Receiver<Value> {
    let (sender, receiver) = channel();
    let mut state = state.lock().unwrap();
    state
        .watches
        .entry(path.to_owned())
        .or_default()
        .push(sender);
    receiver
}

fn stream(conversation: &mut Conversation<'_>, events: &Receiver<Value>) {
    conversation.send(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    while let Ok(event) = events.recv() {
        let line = format!("{event}\n");
        conversation.send(format!("{:x}\r\n{line}\r\n", line.len()));
    }
    conversation.send("0\r\n\r\n");
}

fn send(conversation: &mut Conversation<'_>, status: u16, body: &Value) {
    let body = body.to_string();
    conversation.send(format!(
        "HTTP/1.1 {status} Told\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
}
