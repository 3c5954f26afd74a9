/** `install.sh --with-postgres`, which runs the setup of the executable that it installs. */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Installer } from '../testing/setup/installer.ts'
import { TARGET, VERSION } from './origin/installer-fixture.ts'

let installer: Installer
let work: string
beforeEach(() => {
  installer = new Installer()
  work = installer.work
})
afterEach(() => installer.remove())

const SAYS = `if [ "$1" = version ]; then echo ${VERSION}; else echo "ran $*"; fi`

test('the setup runs after the installation, with the agreement of the caller', () => {
  installer.release({ script: SAYS })
  const result = installer.install(['--with-postgres', '--yes'])
  expect([result.status, result.stderr]).toEqual([0, ''])
  expect(result.stdout).toMatch(/Installed[\s\S]*\nran setup --with-postgres --yes\n$/)
  expect(readdirSync(work).filter((name) => name.startsWith('tmp'))).toEqual([])
  const repeated = installer.install(['--with-postgres', '--yes'])
  expect(repeated.stdout).toMatch(/already installed[\s\S]*\nran setup --with-postgres --yes\n$/)
})

test('the exit code of a failed setup is the one of the installer', () => {
  installer.release({ script: `if [ "$1" = version ]; then echo ${VERSION}; else exit 5; fi` })
  expect(installer.install(['--with-postgres', '--yes']).status).toBe(5)
})

test('a dry run of the setup comes from the installed executable and changes nothing', () => {
  installer.release({ script: SAYS })
  expect(installer.install(['--with-postgres', '--dry-run']).stdout).toContain('Would run')
  expect(existsSync(join(work, 'bin'))).toBe(false)
  installer.install()
  const { stdout } = installer.install(['--with-postgres', '--dry-run'])
  expect(stdout).toMatch(/\nran setup --with-postgres --dry-run\n$/)
})

test('nothing is installed where the setup could ask nobody', () => {
  installer.release({ script: SAYS })
  const result = installer.install(['--with-postgres'], {}, 'exec setsid --wait /bin/sh')
  expect(result.status).toBe(1)
  expect(result.stderr).toContain('There is no terminal to ask on')
  expect(existsSync(join(work, 'bin'))).toBe(false)
})

test.each([
  [['--with-postgres', '--yes'], 'fake', '--with-postgres needs root.'],
  [['--with-postgres', '--yes', '--service'], 'none', 'not both'],
])('%j with %s programs installs nothing', (args, programs, reason) => {
  installer.release({ script: SAYS })
  mkdirSync(join(work, 'fake'))
  writeFileSync(join(work, 'fake/id'), '#!/bin/sh\necho 1000\n', { mode: 0o755 })
  const path = `${join(work, programs)}:/usr/bin:/bin:/usr/sbin:/sbin`
  const result = installer.install(args, { PATH: path, DESTDIR: join(work, 'root') })
  expect([result.status, existsSync(join(work, 'bin'))]).toEqual([1, false])
  expect(result.stderr).toContain(reason)
})

test.each([
  ['Darwin', 0, 'ran setup --with-postgres --yes'],
  ['FreeBSD', 1, '--with-postgres is for Linux and macOS.'],
])('the setup on %s exits with %i', (system, status, said) => {
  installer.release({ script: SAYS })
  mkdirSync(join(work, 'fake'))
  writeFileSync(join(work, 'fake/uname'), `#!/bin/sh\necho ${system}\n`, { mode: 0o755 })
  const path = `${join(work, 'fake')}:/usr/bin:/bin:/usr/sbin:/sbin`
  const variables = { PATH: path, SVC_TARGET: TARGET }
  const result = installer.install(['--with-postgres', '--yes'], variables)
  expect([result.status, existsSync(join(work, 'bin'))]).toEqual([status, status === 0])
  expect(result.stdout + result.stderr).toContain(said)
})

test('executables that a daemon of launchd runs are not removed', () => {
  installer.release()
  installer.install()
  const root = join(work, 'root')
  const plist = join(root, 'Library/LaunchDaemons/svc-server.plist')
  mkdirSync(join(plist, '..'), { recursive: true })
  writeFileSync(plist, `<string>${join(work, 'bin/svc-server')}</string>`)
  const refused = installer.install(['--uninstall'], { DESTDIR: root })
  expect(refused.stderr).toContain('svc-server setup --uninstall')
  rmSync(plist)
  expect(installer.install(['--uninstall'], { DESTDIR: root }).status).toBe(0)
})

test('executables that a service runs are not removed', () => {
  installer.release()
  const root = join(work, 'root')
  installer.install(['--service'], { DESTDIR: root })
  const refused = installer.install(['--uninstall'], { DESTDIR: root })
  expect(refused.status).toBe(1)
  expect(refused.stderr).toContain('svc-server setup --uninstall')
  expect(existsSync(join(work, 'bin/svc-server'))).toBe(true)
  rmSync(join(root, 'etc/systemd'), { recursive: true })
  expect(installer.install(['--uninstall'], { DESTDIR: root }).status).toBe(0)
})
