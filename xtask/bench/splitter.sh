# splitter with plain sockets and one worker, for a bench that runs proxies side by side: bash
# functions that write the configuration, start the proxy and have it take up a change.
#
# The routes are Ingress objects as people write them: one Ingress a host, and one canary Ingress a
# host with weight, header and cookie. A change of weight replaces the files of the canaries; nothing
# is signalled. Every request is logged to a file, and metrics are kept, unless ACCESS_LOG says otherwise:
# what the other proxies there do is less.
: "${SPLITTER:=splitter}"

available() { command -v "$SPLITTER" >/dev/null; }
version() { "$SPLITTER" version | sed 's/^splitter //'; }

# Ingresses of every host, a thousand hosts a file. Arguments: beginning of the files' names, suffix
# of the Ingresses' names, their Service, their annotations.
ingresses() {
    awk -v hosts="$HOSTS" -v paths="$PATHS" -v file="$1" -v suffix="$2" -v service="$3" -v annotations="$4" 'BEGIN {
        for (p = 0; p < paths; p++)
            rules = rules "      - {path: /p" p ", pathType: Prefix, backend: {service: {name: " service ", port: {number: 80}}}}\n"
        for (h = 0; h < hosts; h++) {
            out = file int(h / 1000) ".yaml"
            print "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:" >out
            print "  name: h" h suffix "\n  namespace: bench\n  annotations: {" annotations "}" >out
            print "spec:\n  ingressClassName: nginx\n  rules:" >out
            printf "  - host: h%d.example.test\n    http:\n      paths:\n%s", h, rules >out
        }
    }'
}

# A Service with one endpoint. Arguments: its name, the port on 127.0.0.1.
service() {
    cat <<YAML
---
apiVersion: v1
kind: Service
metadata: {name: $1, namespace: bench}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: $1-1, namespace: bench, labels: {kubernetes.io/service-name: $1}}
addressType: IPv4
ports: [{name: http, port: $2}]
endpoints: [{addresses: [127.0.0.1]}]
YAML
}

# The certificate that every host is served with, as a Secret.
certificate() {
    cat <<YAML
---
apiVersion: v1
kind: Secret
metadata: {name: certificate, namespace: bench}
type: kubernetes.io/tls
data: {tls.crt: $(base64 -w0 "$CERT"), tls.key: $(base64 -w0 "$KEY")}
YAML
}

configure() {
    local prefix=nginx.ingress.kubernetes.io
    if [ ! -d "$WORK/manifests" ]; then
        mkdir "$WORK/manifests"
        { service stable "$STABLE_PORT"; service canary "$CANARY_PORT"; certificate; } >"$WORK/manifests/services.yaml"
        ingresses "$WORK/manifests/routes" '' stable ''
    fi
    mkdir -p "$WORK/next"
    ingresses "$WORK/next/canary" -canary canary \
        "$prefix/canary: 'true', $prefix/canary-weight: '$WEIGHT', $prefix/canary-by-header: X-Canary, $prefix/canary-by-cookie: canary"
}

start() {
    reload
    exec "$SPLITTER" run --manifests "$WORK/manifests" --http "127.0.0.1:$HTTP_PORT" \
        --admin "127.0.0.1:$ADMIN_PORT" --https "127.0.0.1:$TLS_PORT" \
        --default-ssl-certificate bench/certificate --workers 1 --steering none \
        --access-log "${ACCESS_LOG:-$WORK/access.log}"
}

# What configure wrote is taken up from here on, so that the time it takes counts.
reload() { mv "$WORK"/next/*.yaml "$WORK/manifests/"; }
