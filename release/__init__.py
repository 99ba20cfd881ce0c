"""What makes a release and proves it: each part is one command, e.g. `python -m release.lock`.

It stands beside the package, as `benchmarks` does: it is typed and tested like the rest, and no user installs it.
`RELEASING.md` tells when each is run; `docs/decisions/0015-supply-chain.md` why.
"""
