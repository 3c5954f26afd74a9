import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startServer } from './server-process.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-server-process-'))
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Prints the lines of a start, and then more lines to both streams, in pieces. */
const SCRIPT = `#!/bin/sh
echo 'starting'
echo '{"event":"server.listening","surface":"management","address":"127.0.0.1:1"}' >&2
echo '{"event":"server.ready"}' >&2
sleep 0.1
printf 'one\\ntw' >&2
sleep 0.1
printf 'out\\n'
sleep 0.1
printf 'o\\nlast'  >&2
`

test('lines are kept once the server is ready, with and without a callback', async () => {
  const executable = join(directory, 'server')
  writeFileSync(executable, SCRIPT, { mode: 0o755 })
  for (const heard of [undefined, [] as string[]]) {
    const server = await startServer({
      executable,
      directory,
      environment: { PATH: '/usr/bin:/bin' },
      ...(heard !== undefined && { onLine: (line) => heard.push(line) }),
    })
    expect(server.management).toBe('http://127.0.0.1:1')
    expect(await server.ended).toBe(0)
    await expect.poll(() => server.lines.at(-1)).toBe('last')
    expect(server.lines).toEqual(expect.arrayContaining(['starting', 'out']))
    // Lines of the two streams have no order.
    const errors = server.lines.filter((line) => line !== 'starting' && line !== 'out')
    const [listening, ready, ...later] = errors
    expect([listening, ready]).toEqual([
      expect.stringContaining('listening'),
      expect.stringContaining('ready'),
    ])
    expect(later).toEqual(['one', 'two', 'last'])
    if (heard !== undefined) expect(heard).toEqual(server.lines)
  }
})
