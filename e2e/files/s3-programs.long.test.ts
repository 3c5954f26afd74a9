/** rclone and s3cmd with many and with large files at the S3-compatible API of the executable. */
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, test } from 'vitest'
import { RCLONE, reasonWithout, S3CMD } from '../../testing/files/s3-programs.ts'
import type { S3Remote } from '../../testing/files/s3-remotes.ts'
import {
  manageWithRclone,
  manageWithS3cmd,
  syncWithRclone,
  syncWithS3cmd,
} from '../../testing/files/s3-round-trips.ts'
import { type Application, application } from '../application.ts'
import { argv } from '../argv.ts'

const MIB = 1024 * 1024

let app: Application
let remote: S3Remote
beforeAll(async () => {
  app = await application()
  const { accessKeyId, secretAccessKey } = await app.svc(argv`
    buckets keys issue default --name programs --access write
    --remote --root ${app.installation.productRoot}
  `)
  const endpoint = `${app.server.application}/v1/s3`
  remote = { endpoint, bucket: 'default', keys: { accessKeyId, secretAccessKey } }
})
afterAll(() => app?.installation.dispose())

test.skipIf(!existsSync(RCLONE))(
  `rclone syncs 1,000 files and one of 1 GiB both ways, and manages them${reasonWithout(RCLONE)}`,
  { timeout: 600_000 },
  async () => {
    await syncWithRclone(remote, { count: 1_000, largeBytes: 1_024 * MIB })
    await manageWithRclone(remote)
  },
)

test.skipIf(!existsSync(S3CMD))(
  `s3cmd syncs 1,000 files and one of 64 MiB both ways, and manages them${reasonWithout(S3CMD)}`,
  { timeout: 600_000 },
  async () => {
    await syncWithS3cmd(remote, { count: 1_000, largeBytes: 64 * MIB })
    await manageWithS3cmd(remote)
  },
)
