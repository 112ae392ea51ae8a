//! Which pod a client with a session is answered by.

use splitter_tests::backend::Backend;
use splitter_tests::eventually;
use splitter_tests::instance::Splitter;
use splitter_tests::jar::Jar;
use splitter_tests::manifests::Manifests;

struct Pods(Vec<Backend>);

impl Pods {
    fn new(count: usize) -> Self {
        Pods((0..count).map(pod).collect())
    }

    /// The first `count` of them behind one Ingress with affinity of this mode.
    fn manifests(&self, count: usize, mode: &str) -> Manifests {
        let addrs: Vec<_> = self.0.iter().take(count).map(Backend::addr).collect();
        let annotations = [("affinity", "cookie"), ("affinity-mode", mode)];
        Manifests::new()
            .ingress("web", "a.test", "/", "Prefix", "app", &annotations)
            .service("app", &addrs)
    }
}

/// Answers with its number and closes the connection: when it is dropped nothing of it is left.
fn pod(number: usize) -> Backend {
    Backend::scripted(move |conversation| {
        if conversation.request().is_some() {
            let text = number.to_string();
            conversation.send(format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            ));
        }
    })
}

fn ask(splitter: &Splitter, jar: &mut Jar) -> String {
    jar.ask(splitter, "a.test", "/", "").text()
}

/// Clients, each with the pod that answered it.
fn clients(splitter: &Splitter, count: usize) -> Vec<(Jar, String)> {
    (0..count)
        .map(|_| {
            let mut jar = Jar::new();
            let pod = ask(splitter, &mut jar);
            (jar, pod)
        })
        .collect()
}

#[test]
fn a_client_stays_with_its_pod_through_every_instance() {
    for mode in ["balanced", "persistent"] {
        let pods = Pods::new(3);
        let splitter = Splitter::start(&pods.manifests(3, mode));
        let other = Splitter::start(&pods.manifests(3, mode));
        let clients = clients(&splitter, 30);
        for pod in ["0", "1", "2"] {
            assert!(clients.iter().any(|client| client.1 == pod), "{mode} {pod}");
        }
        for (mut jar, pod) in clients {
            for splitter in [&splitter, &other] {
                assert_eq!(ask(splitter, &mut jar), pod, "{mode}");
            }
        }
    }
}

#[test]
fn more_pods_take_over_clients_of_balanced_sessions_only() {
    for (mode, all_stay) in [("balanced", false), ("persistent", true)] {
        let pods = Pods::new(4);
        let splitter = Splitter::start(&pods.manifests(2, mode));
        let clients = clients(&splitter, 60);
        splitter.apply(&pods.manifests(4, mode));
        eventually("the new pods are used", || {
            let pod = ask(&splitter, &mut Jar::new());
            pod == "2" || pod == "3"
        });
        let mut stayed = 0;
        for (mut jar, pod) in clients {
            let now = ask(&splitter, &mut jar);
            assert!(now == pod || now == "2" || now == "3", "{mode}");
            stayed += usize::from(now == pod);
        }
        // Half of them are expected to move when there are twice as many pods.
        match all_stay {
            true => assert_eq!(stayed, 60),
            false => assert!((10..50).contains(&stayed), "{stayed} of 60 stayed"),
        }
    }
}

#[test]
fn a_client_whose_pod_is_gone_gets_another_for_good() {
    for mode in ["balanced", "persistent"] {
        let pods = Pods::new(2);
        let splitter = Splitter::start(&pods.manifests(2, mode));
        let mut clients = clients(&splitter, 20);
        splitter.apply(&pods.manifests(1, mode));
        let (jar, _) = clients
            .iter_mut()
            .find(|client| client.1 == "1")
            .expect("some client is on the second pod");
        eventually("the first pod answers", || ask(&splitter, jar) == "0");
        for (jar, _) in &mut clients {
            assert_eq!(ask(&splitter, jar), "0");
        }
    }
}

/// Clients of a pod that refuses are answered by the other one.
#[test]
fn a_pod_that_fails_changes_the_cookie_only_when_told_to() {
    for mode in ["balanced", "persistent"] {
        for change in ["false", "true"] {
            let mut pods = Pods::new(2);
            let annotations = [
                ("affinity", "cookie"),
                ("affinity-mode", mode),
                ("session-cookie-change-on-failure", change),
            ];
            let addrs: Vec<_> = pods.0.iter().map(Backend::addr).collect();
            let splitter = Splitter::start(
                &Manifests::new()
                    .ingress("web", "a.test", "/", "Prefix", "app", &annotations)
                    .service("app", &addrs),
            );
            let clients = clients(&splitter, 40);
            let (jar, _) = clients
                .iter()
                .find(|client| client.1 == "1")
                .expect("some client is on the second pod");
            drop(pods.0.pop());
            // The first finds out that the pod refuses; the others are not sent there for a while.
            for _ in 0..3 {
                let mut again = jar.clone();
                assert_eq!(ask(&splitter, &mut again), "0", "{mode} {change}");
                let changed = again.get("INGRESSCOOKIE") != jar.get("INGRESSCOOKIE");
                assert_eq!(changed, change == "true", "{mode} {change}");
            }
        }
    }
}
