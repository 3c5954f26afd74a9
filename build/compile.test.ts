import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { tarGzip } from './archives.ts'

test('an archive has the same bytes for any order of entries, and tar can read it', () => {
  const entry = (path: string, text: string, executable: boolean) => ({
    path,
    bytes: Buffer.from(text),
    executable,
  })
  const entries = [entry('svc-server', 'x'.repeat(1000), true), entry('dir/LICENSE', '', false)]
  const packed = tarGzip(entries)
  expect(tarGzip([...entries].reverse())).toEqual(packed)
  const listed = spawnSync('tar', ['-tvzf', '-'], { input: packed, encoding: 'utf8' })
  expect(listed.stderr).toBe('')
  const lines = listed.stdout.trim().split('\n')
  expect(lines[0]).toMatch(/^-rw-r--r-- root\/root\s+0 1970-01-01 00:00 dir\/LICENSE$/)
  expect(lines[1]).toMatch(/^-rwxr-xr-x root\/root\s+1000 1970-01-01 00:00 svc-server$/)
})
