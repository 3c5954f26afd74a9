import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { VERSION } from '../value/version.ts'

const MAIN = join(import.meta.dirname, '../main.ts')

/** Starts the program as the file `name` would; the runtime passes `argv0` on as it is. */
function start(name: string, ...args: string[]) {
  const ran = spawnSync(process.execPath, [MAIN, ...args], {
    argv0: name,
    env: {},
    timeout: 60_000,
  })
  return { exit: ran.status, out: String(ran.stdout), err: String(ran.stderr) }
}

const VERSION_LINE = `svc-server ${VERSION} (${process.platform}-${process.arch})\n`

describe('the program', () => {
  it.each([
    ['svc-server', ['version']],
    ['/usr/local/bin/svc-server', ['version']],
    ['svc-server.exe', ['version']],
    ['bun', ['svc-server', 'version']],
    ['svc-linux-x64', ['svc-server', 'version']],
  ])('called as %s with %j is the server', (name, args) => {
    expect(start(name, ...args)).toEqual({ exit: 0, out: VERSION_LINE, err: '' })
  })

  it.each([
    ['bun', []],
    ['bun', ['version']],
    ['svc-linux-x64', ['--help']],
  ])('called as %s with %j says how to use it', (name, args) => {
    const { exit, out, err } = start(name, ...args)
    expect([exit, out]).toEqual([2, ''])
    expect(err).toContain('Usage: svc <command> or svc-server <mode>')
  })

  it('ends with the exit code of the mode and its line on standard error', () => {
    const { exit, out, err } = start('svc-server', 'check')
    expect([exit, out]).toEqual([78, ''])
    expect(err).toMatch(/^svc-server: SERVER_CONFIGURATION_MISSING: [^\n]+\n$/)
  })

  it('has the version of package.json', () => {
    expect(VERSION).toBe(packageJson.version)
  })
})
