/** Reads the kernel's view of a server: its process, its runners, its listeners, its files. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

interface Process {
  readonly pid: number
  readonly parent: number
  readonly command: string
}

function processes(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const status = kernelText(`/proc/${name}/status`)
      const command = kernelText(`/proc/${name}/cmdline`)
      if (status === null || command === null) return []
      const parent = Number(/^PPid:\t(\d+)$/m.exec(status)?.[1])
      return [{ pid: Number(name), parent, command: command.replaceAll('\0', ' ').trim() }]
    })
}

/** Returns the PID of the only server with files below `directory`. */
export function findServer(directory: string): number {
  const found = processes().filter(
    ({ pid, command }) =>
      /svc-server serve$/.test(command) &&
      !command.startsWith('/bin/sh') &&
      (kernelText(`/proc/${pid}/environ`) ?? '').includes(`${directory}/`),
  )
  if (found.length !== 1) throw new Error(`${found.length} servers run in ${directory}`)
  return found[0]!.pid
}

/** Returns all processes that the server or its children started. */
export function readDescendants(server: number): Process[] {
  const all = processes()
  const found: Process[] = []
  for (let level = [server]; level.length > 0; ) {
    const next = all.filter(({ parent }) => level.includes(parent))
    found.push(...next)
    level = next.map(({ pid }) => pid)
  }
  return found
}

/** Returns the main process of the server and its application processes. */
export function readServing(server: number): number[] {
  const applications = readDescendants(server).filter(isApplication)
  return [server, ...applications.map(({ pid }) => pid)]
}

/** Returns the runners of all processes of the server. */
export function readRunners(server: number): Process[] {
  return readDescendants(server).filter((each) => !isApplication(each))
}

function isApplication({ command }: Process): boolean {
  return command.endsWith(' __application-process')
}

export function residentBytes(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(kernelText(`/proc/${pid}/status`) ?? '')?.[1]
  return Number(kibibytes) * 1024
}

/** Returns the local addresses that the process listens on, in the kernel's notation. */
export function readListeners(pid: number): string[] {
  const own = new Set(Object.values(readDescriptors(pid)))
  const tables = ['tcp', 'tcp6'].map((name) => kernelText(`/proc/${pid}/net/${name}`) ?? '')
  return tables
    .flatMap((table) => table.trim().split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, ...rest]) => state === '0A' && own.has(`socket:[${rest[5]}]`))
    .map(([, local]) => local!)
    .sort()
}

/** Returns the target of each open descriptor. */
export function readDescriptors(pid: number): Record<string, string> {
  const folder = `/proc/${pid}/fd`
  return Object.fromEntries(
    readdirSync(folder).flatMap((name) => {
      try {
        return [[name, readlinkSync(join(folder, name))]]
      } catch {
        return []
      }
    }),
  )
}

export function kernelText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
