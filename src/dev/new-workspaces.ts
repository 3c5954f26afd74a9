/** Writes a new Workspace from a template: all of its files, or none. */
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmdirSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { assert } from '../errors/assert.ts'
import { Fault } from '../errors/fault.ts'
import { AGENTS_TEXT, SDK_TEXTS, TEMPLATES } from '../sdk/embedded.generated.ts'
import { clientFiles } from './clients/client-files.ts'
import { sharedFiles } from './codegen/codegen.ts'
import { linkPackage } from './testing/package-link.ts'

export const DEFAULT_TEMPLATE = 'chat'
const README = 'README.md'
/** Instructions for coding agents, under the name that most of them read. */
const AGENTS_FILE = 'AGENTS.md'
/** Names the server that editors start for their agents. */
const EDITOR_FILE = '.mcp.json'
/** Path of the references for Functions, which are equal to those for an application. */
const REFERENCES_FILE = '_generated/api.ts'

export interface NewWorkspace {
  /** Title of the README of the Workspace. */
  readonly name: string
  readonly template?: string
  /** Absolute path of the root, which editors then name when they start `svc mcp`. */
  readonly rootDirectory?: string
}

/** Replaces the title of a README and escapes the characters that Markdown interprets. */
function withTitle(text: string, name: string): string {
  const title = name.replace(/[\\`*_{}[\]<>#|&!]/g, '\\$&')
  return text.replace(/^# .*/, () => `# ${title}`)
}

/**
 * Writes the files and links `_generated` as the package `svc`. Returns the created paths, relative
 * to `directory`. Throws CLIENT_FILE_FAILED, and changes nothing, if a file exists already or
 * cannot be written. Files for agents that exist already stay as they are.
 */
export function writeWorkspace(
  directory: string,
  { name, template = DEFAULT_TEMPLATE, rootDirectory }: NewWorkspace,
): readonly string[] {
  const agentFiles = agentFilesOf(directory, rootDirectory)
  const files: Readonly<Record<string, string>> = { ...filesOf(template), ...agentFiles }
  const paths = Object.keys(files)
  const taken = paths.filter((path) => existsSync(join(directory, path)))
  if (taken.length > 0) {
    throw new Fault('CLIENT_FILE_FAILED', {
      detail: `Nothing was written, because ${directory} already has ${taken.join(', ')}.`,
    })
  }
  const undo: (() => void)[] = []
  try {
    for (const path of paths) {
      const text = path === README ? withTitle(files[path]!, name) : files[path]!
      write(join(directory, path), text, undo)
    }
  } catch (error) {
    for (const step of undo.reverse()) step()
    const detail = `Nothing was written: ${error instanceof Error ? error.message : 'unknown'}.`
    throw new Fault('CLIENT_FILE_FAILED', { detail, cause: error })
  }
  linkPackage(directory)
  return paths
}

/** Returns the files for agents that the directory does not have, by path. */
function agentFilesOf(
  directory: string,
  rootDirectory: string | undefined,
): Readonly<Record<string, string>> {
  const files = { [AGENTS_FILE]: AGENTS_TEXT, [EDITOR_FILE]: editorFile(directory, rootDirectory) }
  const isFree = (path: string) =>
    lstatSync(join(directory, path), { throwIfNoEntry: false }) === undefined
  return Object.fromEntries(Object.entries(files).filter(([path]) => isFree(path)))
}

/** Names the root by a relative path, so that a clone elsewhere works too. */
function editorFile(directory: string, rootDirectory: string | undefined): string {
  const path = rootDirectory === undefined ? '' : relative(directory, rootDirectory)
  const root = isAbsolute(path) ? path : path.split(sep).join('/')
  const args = root === '' ? ['mcp'] : ['mcp', '--root', root]
  return `${JSON.stringify({ mcpServers: { svc: { command: 'svc', args } } }, null, 2)}\n`
}

/** Returns the files of a template by path, with everything that a build would generate. */
function filesOf(template: string): Readonly<Record<string, string>> {
  const written = TEMPLATES[template]
  assert(written !== undefined, `there is no template ${template}`)
  const { client } = JSON.parse(written['svc.json']!)
  const generated = client === undefined ? [] : clientFiles(client, written[REFERENCES_FILE]!)
  const all = [...sharedFiles(SDK_TEXTS), ...generated]
  return { ...written, ...Object.fromEntries(all.map(({ path, text }) => [path, text])) }
}

/** Writes a file with the exclusive flag, which fails for existing files and symbolic links. */
function write(path: string, text: string, undo: (() => void)[]): void {
  makeDirectory(dirname(path), undo)
  const file = openSync(path, 'wx', 0o644)
  undo.push(() => rmSync(path, { force: true }))
  try {
    const bytes = new TextEncoder().encode(text)
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
  } finally {
    closeSync(file)
  }
}

function makeDirectory(path: string, undo: (() => void)[]): void {
  if (existsSync(path)) return
  makeDirectory(dirname(path), undo)
  mkdirSync(path)
  undo.push(() => removeEmpty(path))
}

function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // The directory is not empty and stays.
  }
}
