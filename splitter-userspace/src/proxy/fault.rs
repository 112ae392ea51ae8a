//! What the proxy answers by itself, and under which name it is counted.

use http::StatusCode;

/// Why a request was not answered by a backend. One status, one name, one sentence each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    // The client's.
    /// Not a message that RFC 9112 lets through: the raw head breaks its grammar.
    BadHead,
    /// HTTP in clear on a TLS listener.
    PlainOnTls,
    /// TLS on a listener that speaks HTTP in clear. Never sent: the client could not read it.
    TlsOnPlain,
    /// The head is larger than the limit.
    HeadTooLarge,
    /// Both Content-Length and Transfer-Encoding, or one of them twice.
    BadFraming,
    /// A transfer coding other than `chunked`.
    UnknownCoding,
    /// The body breaks its framing.
    BadBody,
    /// The head did not arrive in time.
    HeadTimeout,
    /// The body did not arrive in time.
    BodyTimeout,
    /// The connection does not begin with a PROXY header, where it must.
    BadProxyHeader,
    /// No Host where one is required, more than one, or not a host name.
    BadHost,
    /// A request target that is neither origin-form nor absolute-form.
    BadTarget,
    /// A path that a backend could take for another Location's.
    AmbiguousPath,
    /// A rewritten path that leads out of where it should be, or is too long.
    UnsendablePath,
    /// The body is larger than the limit.
    BodyTooLarge,
    /// The body does not say how long it is, and the pods speak HTTP/1.0.
    LengthRequired,
    /// A certificate is needed, and the connection is in clear.
    NeedsTls,
    /// The client has shown no certificate where one is needed.
    CertificateMissing,
    /// The client's certificate is not good here.
    CertificateRefused,
    /// The client's certificate is good, and not let in.
    CertificateDenied,
    /// The connection was made for another host, whose clients are not asked the same.
    Misdirected,
    /// Who may call cannot be told: what says it cannot be read.
    GuardBroken,
    /// CONNECT or TRACE.
    MethodNotAllowed,
    /// The client left before an answer was there. Never sent.
    ClientGone,
    // The Location's.
    /// It is for callers from outside only, or from inside only, and the client is none of them.
    ClassDenied,
    /// Its address lists do not let the client in.
    AddressDenied,
    // The configuration's.
    /// No host or no path matches.
    NoLocation,
    /// The chosen Backend has no Endpoint.
    NoEndpoint,
    // The backend's.
    /// Every Endpoint tried refused the connection, or it broke before an answer.
    UpstreamRefused,
    /// The Endpoint's answer is not HTTP.
    UpstreamInvalid,
    /// TLS with the Endpoint was not agreed on: it does not speak it, does not take us, or does not
    /// prove who it is.
    UpstreamTls,
    /// How to speak TLS with the Endpoints cannot be told: what says it cannot be read.
    UpstreamTlsBroken,
    /// The connection was not made in time.
    ConnectTimeout,
    /// The Endpoint did not answer in time.
    UpstreamTimeout,
    /// The default backend gave no page for an error. Never sent: the error's own status is.
    NoErrorPage,
    // Ours.
    /// Too many connections.
    Overloaded,
    /// Too many requests in hand.
    Busy,
}

impl Fault {
    /// The status that is sent. 499 is nginx's for a client that left; it is only logged.
    pub fn status(self) -> StatusCode {
        match self {
            Fault::CertificateMissing | Fault::CertificateRefused => StatusCode::BAD_REQUEST,
            Fault::NeedsTls | Fault::CertificateDenied => StatusCode::FORBIDDEN,
            Fault::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Fault::GuardBroken | Fault::UpstreamTlsBroken => StatusCode::SERVICE_UNAVAILABLE,
            Fault::BadHead
            | Fault::PlainOnTls
            | Fault::TlsOnPlain
            | Fault::BadFraming
            | Fault::BadBody
            | Fault::BadProxyHeader
            | Fault::BadHost
            | Fault::BadTarget
            | Fault::AmbiguousPath
            | Fault::UnsendablePath => StatusCode::BAD_REQUEST,
            Fault::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Fault::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
            Fault::HeadTimeout | Fault::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Fault::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Fault::LengthRequired => StatusCode::LENGTH_REQUIRED,
            Fault::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Fault::ClassDenied | Fault::AddressDenied => StatusCode::FORBIDDEN,
            Fault::ClientGone => client_closed_request(),
            Fault::NoLocation => StatusCode::NOT_FOUND,
            Fault::NoEndpoint | Fault::Overloaded | Fault::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Fault::UpstreamRefused
            | Fault::UpstreamInvalid
            | Fault::UpstreamTls
            | Fault::NoErrorPage => StatusCode::BAD_GATEWAY,
            Fault::ConnectTimeout | Fault::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Fault::BadHead => "bad-head",
            Fault::PlainOnTls => "plain-http-on-tls-port",
            Fault::TlsOnPlain => "tls-on-plain-port",
            Fault::HeadTooLarge => "head-too-large",
            Fault::BadFraming => "bad-framing",
            Fault::UnknownCoding => "unknown-coding",
            Fault::BadBody => "bad-body",
            Fault::HeadTimeout => "head-timeout",
            Fault::BodyTimeout => "body-timeout",
            Fault::BadProxyHeader => "bad-proxy-header",
            Fault::BadHost => "bad-host",
            Fault::BadTarget => "bad-target",
            Fault::AmbiguousPath => "ambiguous-path",
            Fault::UnsendablePath => "unsendable-path",
            Fault::BodyTooLarge => "body-too-large",
            Fault::LengthRequired => "length-required",
            Fault::NeedsTls => "client-certificate-needs-tls",
            Fault::CertificateMissing => "client-certificate-missing",
            Fault::CertificateRefused => "client-certificate-refused",
            Fault::CertificateDenied => "client-certificate-denied",
            Fault::Misdirected => "misdirected",
            Fault::GuardBroken => "guard-broken",
            Fault::MethodNotAllowed => "method-not-allowed",
            Fault::ClassDenied => "class-denied",
            Fault::AddressDenied => "address-denied",
            Fault::ClientGone => "client-gone",
            Fault::NoLocation => "no-location",
            Fault::NoEndpoint => "no-endpoint",
            Fault::UpstreamRefused => "upstream-refused",
            Fault::UpstreamInvalid => "upstream-invalid",
            Fault::UpstreamTls => "upstream-tls",
            Fault::UpstreamTlsBroken => "upstream-tls-broken",
            Fault::NoErrorPage => "no-error-page",
            Fault::ConnectTimeout => "connect-timeout",
            Fault::UpstreamTimeout => "upstream-timeout",
            Fault::Overloaded => "overloaded",
            Fault::Busy => "busy",
        }
    }

    /// The sentence in the body of the answer.
    pub fn text(self) -> &'static str {
        match self {
            Fault::BadHead => "the request's head is malformed",
            Fault::PlainOnTls => "a plain HTTP request was sent to an HTTPS port",
            Fault::TlsOnPlain => "a TLS connection was made to a plain HTTP port",
            Fault::HeadTooLarge => "the request's head is too large",
            Fault::BadFraming => "the request's length is given twice or in two ways",
            Fault::UnknownCoding => "no transfer coding but chunked is understood",
            Fault::BadBody => "the request's body is malformed",
            Fault::HeadTimeout => "the request's head took too long",
            Fault::BodyTimeout => "the request's body took too long",
            Fault::BadProxyHeader => "the connection must begin with a PROXY header",
            Fault::BadHost => "the request needs one valid Host",
            Fault::BadTarget => "the request's target must be a path or an http URL",
            Fault::AmbiguousPath => "the path can be read as more than one location",
            Fault::UnsendablePath => "the path leads out of its location once rewritten",
            Fault::BodyTooLarge => "the request's body is too large",
            Fault::LengthRequired => "the request's body needs a Content-Length",
            Fault::NeedsTls => "this location is served over https only",
            Fault::CertificateMissing => "this location needs a client certificate",
            Fault::CertificateRefused => "the client certificate is not valid here",
            Fault::CertificateDenied => "this client certificate is not let in",
            Fault::Misdirected => "the connection was made for another host",
            Fault::GuardBroken => "it cannot be told who may call this location",
            Fault::MethodNotAllowed => "this method is not served",
            Fault::ClassDenied => "callers from this side may not call here",
            Fault::AddressDenied => "this address may not call here",
            Fault::ClientGone => "the client closed the connection",
            Fault::NoLocation => "no location for this host and path",
            Fault::NoEndpoint => "no endpoint is ready for this location",
            Fault::UpstreamRefused => "the backend refused or broke the connection",
            Fault::UpstreamInvalid => "the backend's answer is malformed",
            Fault::UpstreamTls => "the backend's TLS cannot be agreed on or trusted",
            Fault::UpstreamTlsBroken => "it cannot be told how to speak TLS with the backend",
            Fault::NoErrorPage => "the default backend gave no page",
            Fault::ConnectTimeout => "the backend did not accept in time",
            Fault::UpstreamTimeout => "the backend did not answer in time",
            Fault::Overloaded => "too many connections",
            Fault::Busy => "too many requests are being answered",
        }
    }

    /// Whether the connection cannot go on after it: where the next request starts is unknown, or
    /// the client must not be believed.
    pub fn closes(self) -> bool {
        matches!(
            self,
            Fault::BadHead
                | Fault::PlainOnTls
                | Fault::TlsOnPlain
                | Fault::HeadTooLarge
                | Fault::BadFraming
                | Fault::UnknownCoding
                | Fault::BadBody
                | Fault::HeadTimeout
                | Fault::BodyTimeout
                | Fault::BadProxyHeader
                | Fault::BodyTooLarge
                | Fault::LengthRequired
                | Fault::BadHost
                | Fault::BadTarget
                | Fault::ClientGone
                | Fault::Overloaded
        )
    }
}

/// 499, which the registry does not know.
fn client_closed_request() -> StatusCode {
    StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST)
}
