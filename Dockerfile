# The gateway and the agent in one image: `docker build -t toolwire .`
# Nothing is written but /state, so that the root can be read-only: see docs/gateway.md.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY docs/toolwire.1 docs/toolwire.1
RUN python -m venv /opt/toolwire && /opt/toolwire/bin/pip install --no-cache-dir .

FROM python:3.13-slim
COPY --from=build /opt/toolwire /opt/toolwire
RUN useradd --system --uid 10001 --no-create-home --home-dir /state toolwire \
    && install -d -o toolwire -g toolwire -m 700 /state
ENV PATH=/opt/toolwire/bin:$PATH TOOLWIRE_HOME=/state HOME=/state PYTHONDONTWRITEBYTECODE=1
USER toolwire
VOLUME /state
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8787/healthz', timeout=4)"]
ENTRYPOINT ["toolwire"]
CMD ["serve", "--host", "0.0.0.0", "--log", "json"]
