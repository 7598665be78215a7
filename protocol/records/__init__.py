"""Record batches: the bytes that producers send, logs store and consumers read.

`layout` holds the positions and constants, `batch` the view over a magic 2 batch and the scan of a buffer, `legacy`
magic 0 and 1, `record` single records, `record_walks` the walks over them, `builder` writing, `control` markers,
`compression` the codecs, `convert` the way between magics. Apache Kafka has them in `org.apache.kafka.common.record`.
"""
