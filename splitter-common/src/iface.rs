/// What an interface is to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A pod's veth, a bridge, a tunnel.
    Inner,
    /// A NIC: leads out of the cluster.
    External,
    /// Nothing is known of the interface: user space without steering.
    Unseen,
}
