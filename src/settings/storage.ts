/** Settings of stored files: the free space that they leave, and the S3-compatible store. */
import type { Secret } from '../value/secret.ts'
import { isOrigin } from './addresses.ts'
import { invalid, type ProcessEnvironment, readPlain, readSecret } from './sources.ts'
import type { PlainName, SecretName, VariableName } from './variables.ts'

export interface StorageSettings {
  /** Bytes that uploads leave free on the disk of the Product root. */
  readonly freeFloorBytes: number
  /** Null keeps the bytes of files in the Product root. */
  readonly s3: S3Settings | null
}

export interface S3Settings {
  /** An origin. */
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: Secret
  readonly secretAccessKey: Secret
}

/** Names of buckets of S3 and of compatible stores. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const REGION = /^[a-z0-9-]{1,64}$/

/** Throws SERVER_CONFIGURATION_INVALID and SERVER_SECRET_CONFIGURATION_CONFLICT. */
export function readStorage(environment: ProcessEnvironment): StorageSettings {
  const name = 'SERVICE_STORAGE_FREE_FLOOR_BYTES'
  const floor = readPlain(environment, name)!
  if (!/^(0|[1-9][0-9]{0,14})$/.test(floor)) throw invalid(name, 'a whole number of bytes')
  return { freeFloorBytes: Number(floor), s3: readS3(environment, STORAGE_S3) }
}

/** Returns the host of the S3 API; null without one. Throws SERVER_CONFIGURATION_INVALID. */
export function readS3Host(environment: ProcessEnvironment): string | null {
  const name = 'SERVICE_S3_HOST'
  const value = readPlain(environment, name)
  if (value === null) return null
  if (isOrigin(`https://${value}`, ['https']) && !/:\d+$/.test(value)) return value
  throw invalid(name, 'a host name or address without a port, such as s3.example.com')
}

/** The variables that say that the bytes are elsewhere than in the root. */
export const S3_NAMES = [
  'SERVICE_STORAGE_S3_ENDPOINT',
  'SERVICE_STORAGE_S3_BUCKET',
  'SERVICE_STORAGE_S3_ACCESS_KEY_ID',
  'SERVICE_STORAGE_S3_SECRET_ACCESS_KEY',
] as const satisfies readonly VariableName[]

/** The variables of one S3-compatible store. */
export interface S3Names {
  readonly endpoint: PlainName
  readonly bucket: PlainName
  readonly region: PlainName
  readonly accessKeyId: SecretName
  readonly secretAccessKey: SecretName
}

const STORAGE_S3: S3Names = {
  endpoint: S3_NAMES[0],
  bucket: S3_NAMES[1],
  region: 'SERVICE_STORAGE_S3_REGION',
  accessKeyId: S3_NAMES[2],
  secretAccessKey: S3_NAMES[3],
}

/**
 * Returns a store; null if none of its variables but the region is set. Throws
 * SERVER_CONFIGURATION_INVALID and SERVER_SECRET_CONFIGURATION_CONFLICT.
 */
export function readS3(environment: ProcessEnvironment, names: S3Names): S3Settings | null {
  const endpoint = readPlain(environment, names.endpoint)
  const bucket = readPlain(environment, names.bucket)
  const region = readPlain(environment, names.region)!
  const accessKeyId = readSecret(environment, names.accessKeyId)
  const secretAccessKey = readSecret(environment, names.secretAccessKey)
  const needed = [names.endpoint, names.bucket, names.accessKeyId, names.secretAccessKey]
  const values = [endpoint, bucket, accessKeyId, secretAccessKey]
  const absent = values.indexOf(null)
  if (values.every((value) => value === null)) {
    return null
  }
  if (endpoint === null || bucket === null || accessKeyId === null || secretAccessKey === null) {
    throw invalid(needed[absent]!, `set, as all of ${needed.join(', ')} are, or none of them`)
  }
  if (!isOrigin(endpoint, ['https', 'http'])) {
    throw invalid(names.endpoint, 'an origin such as https://s3.example.com')
  }
  if (!BUCKET.test(bucket)) throw invalid(names.bucket, 'the name of a bucket')
  if (!REGION.test(region)) throw invalid(names.region, 'a region: us-east-1')
  const keys = { accessKeyId: accessKeyId.secret, secretAccessKey: secretAccessKey.secret }
  return { endpoint, bucket, region, ...keys }
}
