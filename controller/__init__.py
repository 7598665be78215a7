"""The cluster's controller, and the metadata tree it uses: ZooKeeper or the embedded one."""
