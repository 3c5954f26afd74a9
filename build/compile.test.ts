import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { tarGzip } from './archives.ts'
import { DEAF_TO, deafen } from './compile.ts'

const runtime = (names: readonly string[]) => Buffer.from(`before\0${names.join('\0')}\0after`)

test('every name that loads code is changed, and nothing else is', () => {
  const bytes = runtime(['BUN_OPTIONS_NOT', ...DEAF_TO, 'HOME'])
  deafen(bytes)
  const changed = DEAF_TO.map((name) => `=${name.slice(1)}`)
  expect(bytes).toEqual(runtime(['BUN_OPTIONS_NOT', ...changed, 'HOME']))
})

test('a runtime that lacks one of the names is not shipped', () => {
  for (const name of DEAF_TO) {
    const bytes = runtime(DEAF_TO.filter((other) => other !== name))
    expect(() => deafen(bytes)).toThrow(`the runtime has no ${name}`)
  }
})

test('an archive has the same bytes whatever the order, and tar reads it', () => {
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
