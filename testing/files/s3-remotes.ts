/** A bucket of an S3-compatible API as its clients see it. */
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'

export interface S3Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export interface S3Remote {
  /** `http://127.0.0.1:<port>/v1/s3` */
  readonly endpoint: string
  readonly bucket: string
  readonly keys: S3Keys
}

/** Returns a client of the SDK of AWS, which sends each request once. */
export function s3ClientOf(
  { endpoint, keys: credentials }: Pick<S3Remote, 'endpoint' | 'keys'>,
  more: S3ClientConfig = {},
): S3Client {
  const common = { region: 'eu-north-1', forcePathStyle: true, maxAttempts: 1 }
  return new S3Client({ endpoint, credentials, ...common, ...more })
}
