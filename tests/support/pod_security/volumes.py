"""A valid volume of every source type of the API server, and one without a source."""

SOURCES: dict[str, dict[str, object]] = {
    "none": {},
    "configMap": {"configMap": {"name": "x"}},
    "csi": {"csi": {"driver": "x.example.com"}},
    "downwardAPI": {"downwardAPI": {}},
    "emptyDir": {"emptyDir": {}},
    "ephemeral": {
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }
        }
    },
    "image": {"image": {"reference": "x"}},
    "persistentVolumeClaim": {"persistentVolumeClaim": {"claimName": "x"}},
    "projected": {"projected": {"sources": []}},
    "secret": {"secret": {"secretName": "x"}},
    "hostPath": {"hostPath": {"path": "/x"}},
    "gcePersistentDisk": {"gcePersistentDisk": {"pdName": "x"}},
    "awsElasticBlockStore": {"awsElasticBlockStore": {"volumeID": "x"}},
    "gitRepo": {"gitRepo": {"repository": "x"}},
    "nfs": {"nfs": {"server": "x", "path": "/x"}},
    "iscsi": {"iscsi": {"targetPortal": "x", "iqn": "iqn.2001-04.com.example:x", "lun": 0}},
    "glusterfs": {"glusterfs": {"endpoints": "x", "path": "x"}},
    "rbd": {"rbd": {"monitors": ["x"], "image": "x"}},
    "flexVolume": {"flexVolume": {"driver": "example.com/x"}},
    "cinder": {"cinder": {"volumeID": "x"}},
    "cephfs": {"cephfs": {"monitors": ["x"]}},
    "flocker": {"flocker": {"datasetName": "x"}},
    "fc": {"fc": {"targetWWNs": ["x"], "lun": 1}},
    "azureFile": {"azureFile": {"secretName": "x", "shareName": "x"}},
    "vsphereVolume": {"vsphereVolume": {"volumePath": "x"}},
    "quobyte": {"quobyte": {"registry": "x:1", "volume": "x"}},
    "azureDisk": {"azureDisk": {"diskName": "x", "diskURI": "https://blob/x.vhd", "kind": "Shared"}},
    "photonPersistentDisk": {"photonPersistentDisk": {"pdID": "x"}},
    "portworxVolume": {"portworxVolume": {"volumeID": "x"}},
    "scaleIO": {"scaleIO": {"gateway": "x", "system": "x", "volumeName": "x", "secretRef": {"name": "x"}}},
    "storageos": {"storageos": {"volumeName": "x"}},
}
