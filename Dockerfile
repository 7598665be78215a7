# A broker in a container: non-root, one volume for its data, healthy when it answers ApiVersions.
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY broker broker
COPY storage storage
COPY controller controller
COPY coordinator coordinator
COPY testing testing
COPY timer timer
COPY protocol protocol
COPY src src
RUN pip install --no-cache-dir --prefix=/install .

FROM python:3.11-slim
RUN groupadd --gid 1000 odradek \
 && useradd --uid 1000 --gid odradek --home-dir /var/lib/odradek --create-home odradek \
 && install -d -o odradek -g odradek /var/lib/odradek/data
COPY --from=build /install /usr/local
USER odradek
WORKDIR /var/lib/odradek
VOLUME /var/lib/odradek/data
EXPOSE 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s --retries=3 \
    CMD ["odradek", "health", "127.0.0.1:9092"]
ENTRYPOINT ["odradek"]
CMD ["serve", "--host", "0.0.0.0", "--data", "/var/lib/odradek/data"]
