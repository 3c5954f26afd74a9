/** The S3 door to rclone and s3cmd. */
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, test } from 'vitest'
import { openS3Door, type S3Door } from '../../../../build/testing/files/s3-doors.ts'
import { RCLONE, reasonWithout, S3CMD } from '../../../../build/testing/files/s3-programs.ts'
import { syncWithRclone, syncWithS3cmd } from '../../../../build/testing/files/s3-round-trips.ts'

const MIB = 1024 * 1024

let door: S3Door
beforeAll(async () => {
  door = await openS3Door()
})
afterAll(() => door.close())

test.skipIf(!existsSync(RCLONE))(
  `rclone syncs files both ways and finds no difference${reasonWithout(RCLONE)}`,
  () => syncWithRclone(door, { count: 10, largeBytes: 6 * MIB }),
  60_000,
)

test.skipIf(!existsSync(S3CMD))(
  `s3cmd syncs files both ways, in parts where they are large${reasonWithout(S3CMD)}`,
  () => syncWithS3cmd(door, { count: 5, largeBytes: 6 * MIB }),
  60_000,
)
