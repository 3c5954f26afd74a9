import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { collect } from '../format/age-files.ts'
import { TarTarget } from './tar.ts'

/** Longer than the 100 characters that a header has for a name. */
const DIRECTORY = `env_${'0'.repeat(26)}/hst_${'0'.repeat(26)}/blobs`
const NAME = `${'a'.repeat(64)}.age`

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tar-'))
  mkdirSync(join(directory, 'backup', DIRECTORY), { recursive: true })
  writeFileSync(join(directory, 'backup', DIRECTORY, NAME), Buffer.alloc(70_000, 'x'))
  writeFileSync(join(directory, 'backup', 'empty'), '')
})
afterEach(() => rmSync(directory, { recursive: true }))

/** Packs the directory with the tar of the system. Returns the path of the file. */
function packed(format: string, names: readonly string[]): string {
  const file = join(directory, `${format}.tar`)
  const args = [`--format=${format}`, '-cf', file, '-C', join(directory, 'backup'), ...names]
  const { status, stderr } = spawnSync('/bin/tar', args)
  expect(status, String(stderr)).toBe(0)
  return file
}

test.each(['gnu', 'ustar', 'pax'])(
  'a tar file in the format %s has its names',
  { tags: ['slow'] },
  async (format) => {
    for (const names of [['.'], [DIRECTORY.split('/')[0]!, 'empty']]) {
      const target = await TarTarget.open(packed(format, names))
      expect(await target.names('')).toEqual(['empty', DIRECTORY.split('/')[0]])
      expect(await target.names(DIRECTORY)).toEqual([NAME])
      expect(await target.names('env_other')).toEqual([])
      expect(await target.sizeOf('empty')).toBe(0)
      expect(await target.sizeOf('missing')).toBeNull()
      expect(await target.sizeOf(`${DIRECTORY}/${NAME}`)).toBe(70_000)
      const bytes = await collect(target.read(`${DIRECTORY}/${NAME}`))
      expect(Buffer.from(bytes)).toEqual(Buffer.alloc(70_000, 'x'))
      const missing = collect(target.read('missing'))
      await expect(missing).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
    }
  },
)

test('a tar file that was cut off or altered in a header is rejected', async () => {
  const file = packed('gnu', ['.'])
  const whole = readFileSync(file)
  const end = whole.indexOf(Buffer.alloc(1_024))
  for (const length of [100, 512, 30_000, end]) {
    writeFileSync(file, whole.subarray(0, length))
    await expect(TarTarget.open(file), String(length)).rejects.toMatchObject({
      code: 'BACKUP_CORRUPT',
    })
  }
  whole[3]! ^= 1
  writeFileSync(file, whole)
  await expect(TarTarget.open(file)).rejects.toMatchObject({ code: 'BACKUP_CORRUPT' })
})

test('a tar file of a backup has no way to change it', async () => {
  const files = await TarTarget.open(packed('gnu', ['empty']))
  for (const change of ['write', 'remove', 'removeDirectory']) expect(change in files).toBe(false)
})
