/** The file systems of a directory of backups, with a real mount where this process may mount. */
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { DirectoryTarget } from './directory.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-directory-target-'))
const mountPoint = join(directory, 'mounted')
mkdirSync(mountPoint)

afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Returns false if the process may not mount, such as without privileges. */
function mount(): boolean {
  const { exitCode } = Bun.spawnSync(['mount', '-t', 'tmpfs', 'tmpfs', mountPoint])
  return exitCode === 0
}

test('a file system that is mounted over a directory comes before the other', async (context) => {
  const target = new DirectoryTarget(mountPoint)
  const [below, ...outer] = await target.fileSystems()
  expect(below).toBe(statSync(directory).dev)
  if (!mount()) return context.skip('This process may not mount.')
  onTestFinished(() => void Bun.spawnSync(['umount', mountPoint]))
  expect(await target.fileSystems()).toEqual([statSync(mountPoint).dev, below, ...outer])
})

test('a directory that is missing is unavailable', async () => {
  const target = new DirectoryTarget(join(directory, 'missing'))
  await expect(target.fileSystems()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
})
