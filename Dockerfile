# The image: Debian's own Python, the locked wheels, this service, and nothing else.
#
#   docker build --build-arg BASE=debian:trixie-slim@sha256:... \
#     --build-arg VERSION=0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" \
#     --tag registry.example.com/ml/mpijob-webhook:0.1.0 .
#
# BASE has no default: name it by a digest that you trust, since a tag can be moved.
# `docker buildx imagetools inspect debian:trixie-slim` prints the digest of today.
ARG BASE

FROM ${BASE} AS build
# What Debian's packages are is decided by the base image's digest and day.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends binutils python3-venv && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*
WORKDIR /src
COPY requirements/build.txt requirements/run.txt requirements/
# pip works from an environment of its own: in the other one it never was.
RUN python3 -m venv /opt/build && \
    python3 -m venv --without-pip /opt/mpijob-webhook && \
    /opt/build/bin/pip install --no-cache-dir --require-hashes --only-binary=:all: --requirement requirements/build.txt && \
    /opt/build/bin/pip --python /opt/mpijob-webhook/bin/python install --no-cache-dir --no-compile \
      --require-hashes --only-binary=:all: --requirement requirements/run.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY manifests manifests
COPY certs certs
COPY mpijob_webhook mpijob_webhook
COPY webhook webhook
ARG REVISION=
# Compiled here, because the root of a running container is read-only; by content, so that it comes out the same again.
# What debuggers would read of libraries is 34 MB.
RUN SOURCE_COMMIT="${REVISION}" /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . && \
    /opt/build/bin/pip --python /opt/mpijob-webhook/bin/python install --no-cache-dir --no-compile --no-index --no-deps \
      /wheels/*.whl && \
    find /opt/mpijob-webhook -name '*.so' -exec strip --strip-unneeded {} + && \
    /opt/mpijob-webhook/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/mpijob-webhook/lib

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends python3 && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*
COPY --from=build /opt/mpijob-webhook /opt/mpijob-webhook
ENV PATH=/opt/mpijob-webhook/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="mpijob-webhook" \
      org.opencontainers.image.description="Admission webhook for Kubeflow MPIJobs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# A number, so that runAsNonRoot can be checked without /etc/passwd.
USER 65532:65532
EXPOSE 8443 8081
ENTRYPOINT ["/opt/mpijob-webhook/bin/mpijob-webhook"]
CMD ["serve"]
