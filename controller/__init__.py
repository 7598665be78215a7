"""The cluster's controller and the metadata tree (ZooKeeper's or the embedded one) it stands on."""
