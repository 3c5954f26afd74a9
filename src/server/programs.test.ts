import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { VERSION } from '../value/version.ts'

const MAIN = join(import.meta.dirname, '../main.ts')

/** Starts the program under the name `name`; the runtime keeps `argv0`. */
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
  ])('the program called as %s with %j is the server', (name, args) => {
    expect(start(name, ...args)).toEqual({ exit: 0, out: VERSION_LINE, err: '' })
  })

  it.each([
    ['bun', []],
    ['bun', ['version']],
    ['svc-linux-x64', ['--help']],
  ])('the program called as %s with %j prints its usage', (name, args) => {
    const { exit, out, err } = start(name, ...args)
    expect([exit, out]).toEqual([2, ''])
    expect(err).toContain('Usage: svc <command> or svc-server <mode>')
  })

  it('the program exits with the code of the mode and prints its line to standard error', () => {
    const { exit, out, err } = start('svc-server', 'check')
    expect([exit, out]).toEqual([78, ''])
    expect(err).toMatch(/^svc-server: SERVER_CONFIGURATION_MISSING: [^\n]+\n$/)
  })

  it('the program has the version of package.json', () => {
    expect(VERSION).toBe(packageJson.version)
  })
})
