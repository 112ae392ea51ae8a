//! A client of the API server that waits for its answers.

use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// What the API server said no with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status; 0 when there was no answer.
    pub code: u16,
    /// Why.
    pub message: String,
}

/// A client.
pub struct Api {
    runtime: Runtime,
    client: Client,
}

impl Api {
    /// A client for who and where a kubeconfig says.
    pub fn new(kubeconfig: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
        let client = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            let mut config = config.expect("a usable kubeconfig");
            config.default_retry = false;
            Client::try_from(config).expect("a client")
        });
        Api { runtime, client }
    }

    /// The object or list at a path.
    pub fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.send(Method::GET, path, "", None)
    }

    /// Makes the objects of a YAML text what they say, one after the other.
    #[track_caller]
    pub fn apply(&self, yaml: &str) {
        for document in serde_norway::Deserializer::from_str(yaml) {
            let object = <Value as serde::Deserialize>::deserialize(document).expect("YAML");
            if !object.is_null() {
                self.try_apply(&object).expect("the API server takes it");
            }
        }
    }

    /// The same for one object.
    pub fn try_apply(&self, object: &Value) -> Result<Value, Refusal> {
        let path = path_of(object);
        let path = format!("{path}?fieldManager=tests&force=true");
        let kind = "application/apply-patch+yaml";
        self.send(Method::PATCH, &path, kind, Some(object))
    }

    /// Merges a patch into an object.
    pub fn merge(&self, path: &str, patch: &Value) -> Result<Value, Refusal> {
        let kind = "application/merge-patch+json";
        self.send(Method::PATCH, path, kind, Some(patch))
    }

    /// Posts an object.
    pub fn post(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        self.send(Method::POST, path, "application/json", Some(object))
    }

    /// Deletes an object.
    pub fn delete(&self, path: &str) -> Result<Value, Refusal> {
        self.send(Method::DELETE, path, "", None)
    }

    /// Deletes an object with options.
    pub fn delete_with(&self, path: &str, options: &Value) -> Result<Value, Refusal> {
        self.send(Method::DELETE, path, "application/json", Some(options))
    }

    /// A token of a service account.
    pub fn token(&self, namespace: &str, account: &str) -> String {
        self.try_token(namespace, account).expect("a token")
    }

    /// The same of one that may not be there yet.
    pub fn try_token(&self, namespace: &str, account: &str) -> Result<String, Refusal> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let answer = self.post(&path, &request)?;
        let token = answer["status"]["token"].as_str();
        Ok(token.expect("a token").to_owned())
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refusal> {
        let mut request = Request::builder().method(method).uri(path);
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let body = body.map(|it| it.to_string().into_bytes());
        let request = request.body(body.unwrap_or_default()).expect("a request");
        let text = self.runtime.block_on(self.client.request_text(request));
        match text {
            // Health is told in plain text.
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or(Value::String(text))),
            Err(kube::Error::Api(status)) => Err(Refusal {
                code: status.code,
                message: status.message.clone(),
            }),
            Err(error) => Err(Refusal {
                code: 0,
                message: error.to_string(),
            }),
        }
    }
}

/// Where an object is by its kind.
pub fn path_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&object["kind"]);
    let name = text(&object["metadata"]["name"]);
    let group = match text(&object["apiVersion"]).as_str() {
        "v1" => "/api/v1".to_owned(),
        version => format!("/apis/{version}"),
    };
    let plural = match kind.to_lowercase() {
        kind if kind.ends_with("ss") => format!("{kind}es"),
        kind if kind.ends_with('y') => format!("{}ies", kind.trim_end_matches('y')),
        kind => format!("{kind}s"),
    };
    let cluster = [
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "IngressClass",
        "Namespace",
        "Node",
    ];
    if cluster.contains(&kind.as_str()) {
        return format!("{group}/{plural}/{name}");
    }
    let namespace = match text(&object["metadata"]["namespace"]) {
        namespace if namespace.is_empty() => "default".to_owned(),
        namespace => namespace,
    };
    format!("{group}/namespaces/{namespace}/{plural}/{name}")
}
