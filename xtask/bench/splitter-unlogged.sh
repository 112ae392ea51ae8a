# splitter without an access log, as the other proxies are run.
ACCESS_LOG=off
. "$BENCH/proxies/splitter.sh"
