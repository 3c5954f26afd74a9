/**
 * Opens the store of the bytes of files: a directory of the Product root, or an S3-compatible
 * store. The root records which one, so that a lost setting never looks like files without bytes.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { S3Settings, StorageSettings } from '../settings/storage.ts'
import type { BlobStore } from '../storage/blobs/blobs.ts'
import { FileBlobs } from '../storage/blobs/file-blobs.ts'
import { S3Blobs } from '../storage/blobs/s3-blobs.ts'
import type { S3Address } from '../storage/blobs/s3-objects.ts'
import { invalidRoot } from '../storage/files.ts'
import { FILES_DIRECTORY, FILES_S3_FILE } from '../storage/root.ts'
import { FileFailure, readSecretFile, writeFileAtomic } from '../system/files.ts'

interface BlobsOptions {
  readonly rootPath: string
  readonly environmentId: string
  /** Null for the defaults. */
  readonly storage: StorageSettings | null
  /** `FileBlobsOptions.isFilled`. The caller calls `syncAll`. */
  readonly isFilled?: boolean
}

/**
 * Opens the store and records its bucket in the root. Throws SERVER_PRODUCT_ROOT_INVALID if the
 * root records another store, and UNAVAILABLE.
 */
export async function openBlobs(options: BlobsOptions): Promise<BlobStore> {
  checkBlobs(options)
  const { rootPath, environmentId, isFilled = false } = options
  const { freeFloorBytes, s3 } = options.storage ?? { freeFloorBytes: 0, s3: null }
  const directory = join(rootPath, FILES_DIRECTORY)
  if (s3 === null) return FileBlobs.open({ directory, freeFloorBytes, isFilled })
  const { bucket } = s3
  const address = revealAddress(s3)
  const stagingDirectory = join(directory, 'temporary')
  const blobs = await S3Blobs.open({ address, environmentId, stagingDirectory, freeFloorBytes })
  if (readBucket(rootPath) === null) writeFileAtomic(join(rootPath, FILES_S3_FILE), `${bucket}\n`)
  return blobs
}

interface FollowOptions extends Pick<BlobsOptions, 'rootPath' | 'environmentId'> {
  /** The address of the S3-compatible store; null for the disk. */
  readonly s3: S3Address | null
}

/** Opens the store in a process that does not own the root, for reads alone. */
export function followBlobs({
  rootPath,
  environmentId,
  s3,
}: FollowOptions): Pick<BlobStore, 'open'> {
  const directory = join(rootPath, FILES_DIRECTORY)
  if (s3 === null) return FileBlobs.follow(directory)
  const stagingDirectory = join(directory, 'temporary')
  return S3Blobs.follow({ address: s3, environmentId, stagingDirectory })
}

/** Returns the address with its revealed keys, for the client of the store alone. */
export function revealAddress({ endpoint, bucket, region, ...keys }: S3Settings): S3Address {
  const accessKeyId = keys.accessKeyId.reveal()
  const secretAccessKey = keys.secretAccessKey.reveal()
  return { endpoint, bucket, region, accessKeyId, secretAccessKey }
}

/** Throws SERVER_PRODUCT_ROOT_INVALID as `openBlobs` does, without opening the store. */
export function checkBlobs({
  rootPath,
  storage,
}: Pick<BlobsOptions, 'rootPath' | 'storage'>): void {
  const bucket = readBucket(rootPath)
  const s3 = storage?.s3 ?? null
  if (s3 === null && bucket !== null) {
    throw invalidRoot(`its files are in the S3 bucket ${bucket}: set SERVICE_STORAGE_S3_BUCKET`)
  }
  if (s3 !== null && bucket !== null && s3.bucket !== bucket) {
    const fix = `set SERVICE_STORAGE_S3_BUCKET, or name the new bucket in ${FILES_S3_FILE}`
    throw invalidRoot(`its files are in the S3 bucket ${bucket}: ${fix}`)
  }
  if (s3 !== null && hasBlobs(join(rootPath, FILES_DIRECTORY, 'sha256'))) {
    throw invalidRoot(`its files are in ${FILES_DIRECTORY}: unset SERVICE_STORAGE_S3_BUCKET`)
  }
}

function hasBlobs(directory: string): boolean {
  if (!existsSync(directory)) return false
  return readdirSync(directory).some((name) => readdirSync(join(directory, name)).length > 0)
}

function readBucket(rootPath: string): string | null {
  try {
    const bytes = readSecretFile(join(rootPath, FILES_S3_FILE), { bytesMax: 256 })
    return new TextDecoder().decode(bytes).trimEnd()
  } catch (error) {
    if (error instanceof FileFailure && error.reason === 'missing') return null
    throw invalidRoot(`${FILES_S3_FILE} cannot be read`)
  }
}
