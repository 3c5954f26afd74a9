/** The S3 door to rclone and s3cmd, with many files and large ones. */
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, test } from 'vitest'
import { openS3Door, type S3Door } from '../../../../build/testing/files/s3-doors.ts'
import { RCLONE, reasonWithout, S3CMD } from '../../../../build/testing/files/s3-programs.ts'
import {
  manageWithRclone,
  manageWithS3cmd,
  syncWithRclone,
  syncWithS3cmd,
} from '../../../../build/testing/files/s3-round-trips.ts'

const MIB = 1024 * 1024

let door: S3Door
beforeAll(async () => {
  door = await openS3Door()
})
afterAll(() => door.close())

test.skipIf(!existsSync(RCLONE))(
  `rclone syncs 1,000 files and one of 1 GiB both ways, and manages them${reasonWithout(RCLONE)}`,
  async () => {
    await syncWithRclone(door, { count: 1_000, largeBytes: 1_024 * MIB })
    await manageWithRclone(door)
  },
  600_000,
)

test.skipIf(!existsSync(S3CMD))(
  `s3cmd syncs 1,000 files and one of 64 MiB both ways, and manages them${reasonWithout(S3CMD)}`,
  async () => {
    await syncWithS3cmd(door, { count: 1_000, largeBytes: 64 * MIB })
    await manageWithS3cmd(door)
  },
  600_000,
)
