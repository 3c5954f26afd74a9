/** Each rule of the settings of the file store, broken once. */
import { ROOT } from './environments.ts'

const INVALID = 'SERVER_CONFIGURATION_INVALID'
const P_ROOT = 'SERVICE_PRODUCT_ROOT'
const S3_ENDPOINT = 'SERVICE_STORAGE_S3_ENDPOINT'
const S3_BUCKET = 'SERVICE_STORAGE_S3_BUCKET'
const S3_REGION = 'SERVICE_STORAGE_S3_REGION'
const S3_ID = 'SERVICE_STORAGE_S3_ACCESS_KEY_ID'
const S3_SECRET = 'SERVICE_STORAGE_S3_SECRET_ACCESS_KEY'
const FLOOR = 'SERVICE_STORAGE_FREE_FLOOR_BYTES'
const S3 = {
  ...ROOT,
  [S3_ENDPOINT]: 'https://s3.test',
  [S3_BUCKET]: 'files',
  [S3_ID]: 'canary',
  [S3_SECRET]: 'canary',
}
const { [S3_SECRET]: _, ...WITHOUT_SECRET } = S3

export const STORAGE = [
  ['the floor is a number of bytes', INVALID, FLOOR, { ...ROOT, [FLOOR]: '1.5e9canary' }],
  ['an S3 store needs the root', INVALID, S3_ENDPOINT, { ...S3, [P_ROOT]: undefined }],
  ['an S3 store needs a bucket', INVALID, S3_BUCKET, { ...S3, [S3_BUCKET]: undefined }],
  ['an S3 store needs an endpoint', INVALID, S3_ENDPOINT, { ...S3, [S3_ENDPOINT]: undefined }],
  ['an S3 store needs a key', INVALID, S3_ID, { ...S3, [S3_ID]: undefined }],
  ['an S3 store needs a secret', INVALID, S3_SECRET, WITHOUT_SECRET],
  ['the S3 endpoint is an origin', INVALID, S3_ENDPOINT, { ...S3, [S3_ENDPOINT]: 'canary/x' }],
  ['the S3 bucket has a name', INVALID, S3_BUCKET, { ...S3, [S3_BUCKET]: '../canary' }],
  ['the S3 region is one', INVALID, S3_REGION, { ...S3, [S3_REGION]: 'canary east' }],
] as const
