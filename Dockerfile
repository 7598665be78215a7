# A broker in a container: non-root, one volume for its data, healthy when it answers ApiVersions.
#   docker build -t odradek .
#   docker build -t odradek-testcontainers --target testcontainers .    for the Kafka modules of testcontainers
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

FROM python:3.11-slim AS broker
# The base image has its library without bytecode, and the user below cannot write it: each start, and each health check,
# would compile what it imports.
RUN python -m compileall -q -x "/(distutils|ensurepip|idlelib|lib2to3|pydoc_data|site-packages|turtledemo)/" \
    /usr/local/lib/python3.11
RUN groupadd --gid 1000 odradek \
 && useradd --uid 1000 --gid odradek --home-dir /var/lib/odradek --create-home odradek \
 && install -d -o odradek -g odradek /var/lib/odradek/data
COPY --from=build /install /usr/local
COPY container/server.properties /etc/odradek/server.properties
USER odradek
WORKDIR /var/lib/odradek
VOLUME /var/lib/odradek/data
EXPOSE 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s --retries=3 \
    CMD ["odradek", "health", "127.0.0.1:9092"]
ENTRYPOINT ["odradek"]
CMD ["serve", "/etc/odradek/server.properties"]

# Has the files of the images apache/kafka and confluentinc/cp-kafka that test kits run; starts as they do.
FROM broker AS testcontainers
USER root
COPY container/install.sh /tmp/install.sh
RUN sh /tmp/install.sh / \
 && chown -R odradek:odradek /etc/kafka /etc/confluent \
 && rm /tmp/install.sh
USER odradek
ENV KAFKA_LOG_DIRS=/var/lib/odradek/data
EXPOSE 9092 9093
ENTRYPOINT []
CMD ["/etc/kafka/docker/run"]

FROM broker
