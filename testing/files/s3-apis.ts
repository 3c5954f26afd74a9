/** An application listener with the S3-compatible API, and storage keys for its clients. */
import type { S3Client } from '@aws-sdk/client-s3'
import { storageSecret } from '../../src/product/buckets/storage-callers.ts'
import { findBucketByName, insertBucket } from '../../src/storage/control/buckets.ts'
import { insertStorageKey, markStorageKeyRevoked } from '../../src/storage/control/storage-keys.ts'
import { realSystem } from '../../src/system/system.ts'
import { DEFAULT_BUCKET } from '../../src/value/files/files.ts'
import type { StorageKeyId } from '../../src/value/ids.ts'
import type { GatewayInput } from '../gateways.ts'
import { type FileServer, openFileServer } from './file-servers.ts'
import { type S3Keys, s3ClientOf } from './s3-remotes.ts'

export interface StorageKeys extends S3Keys {
  readonly accessKeyId: StorageKeyId
}

export interface S3Api {
  readonly server: FileServer
  /** `http://127.0.0.1:<port>/v1/s3` */
  readonly endpoint: string
  readonly keys: StorageKeys
  /** A client of the bucket `default` that may write. */
  readonly client: S3Client
  clientOf(keys: S3Keys): S3Client
  /** Returns a client of the bucket `default` with another endpoint. */
  clientAt(endpoint: string): S3Client
  issueKey(access: 'read' | 'write', bucket?: string): StorageKeys
  revokeKey(keys: StorageKeys): void
  makeBucket(name: string, bounds?: { quotaBytes?: bigint; maximumObjectBytes?: bigint }): void
  close(): Promise<void>
}

export async function openS3Api(input: Partial<GatewayInput> = {}): Promise<S3Api> {
  const server = await openFileServer(input)
  const { root } = server.gateway.harness
  const system = realSystem()
  const endpoint = `${server.origin}/v1/s3`
  const clientOf = (keys: S3Keys) => s3ClientOf({ endpoint, keys })
  const issueKey: S3Api['issueKey'] = (access, bucket = DEFAULT_BUCKET) => {
    const storageKeyId = system.ids.make('stk')
    const createdAtMicros = system.nowMicros()
    const { bucketId } = root.control.read((reader) => findBucketByName(reader, bucket))!
    const keyId = root.keyring.activeId
    const times = { createdAtMicros, revokedAtMicros: null, replaces: null }
    const key = { storageKeyId, bucketId, name: 'test', access, keyId, ...times }
    root.control.transaction((tx) => insertStorageKey(tx, { ...key, state: 'active' }))
    const secret = storageSecret(root.keyring, keyId, storageKeyId)
    return { accessKeyId: storageKeyId, secretAccessKey: secret.reveal() }
  }
  const keys = issueKey('write')
  const client = clientOf(keys)
  return {
    server,
    endpoint,
    keys,
    client,
    clientOf,
    issueKey,
    clientAt: (other) => s3ClientOf({ endpoint: other, keys }),
    revokeKey: ({ accessKeyId }) => {
      const now = system.nowMicros()
      root.control.transaction((tx) => markStorageKeyRevoked(tx, accessKeyId, now))
    },
    makeBucket: (name, { quotaBytes = null, maximumObjectBytes = null } = {}) => {
      const at = system.nowMicros()
      const bucketId = system.ids.make('bkt')
      const configuration = { name, quotaBytes, maximumObjectBytes }
      const bucket = { bucketId, configuration, lifecycle: 'active', revision: 1n } as const
      const times = { createdAtMicros: at, updatedAtMicros: at }
      root.control.transaction((tx) => insertBucket(tx, { ...bucket, ...times }))
    },
    async close() {
      client.destroy()
      await server.close()
    },
  }
}
