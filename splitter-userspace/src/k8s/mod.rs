//! Kubernetes objects in, a Snapshot out.
