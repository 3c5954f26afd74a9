/**
 * The process that checks types, which keeps the memory and the time of a compiler out of the build
 * process. It answers each line of its input with one line, and keeps its program in between.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import type ts from 'typescript-api'
import { assert } from '../../errors/assert.ts'
import { codeFrame } from '../workspace/code-frames.ts'
import type { Problem } from '../workspace/problems.ts'
import { certainMistakes } from './certain-mistakes.ts'
import {
  type Compiler,
  embeddedCompiler,
  installedCompiler,
  type NativeCompiler,
} from './compilers.ts'
import { explain } from './explanations.ts'
import type { TypeCheckReply, TypeCheckRequest, TypeCheckResult } from './messages.ts'
import { CheckedProgram, DEFAULT_OPTIONS, FORCED_OPTIONS } from './programs.ts'

/** Checks one Workspace on request until the input ends. */
export async function runTypeChecker(directory: string): Promise<void> {
  const check = await loadTypeChecker(directory)
  for await (const line of createInterface({ input: process.stdin })) {
    let reply: TypeCheckReply
    try {
      reply = check(JSON.parse(line) as TypeCheckRequest)
    } catch (error) {
      reply = { failure: error instanceof Error ? (error.stack ?? error.message) : 'unknown' }
    }
    process.stdout.write(`${JSON.stringify(reply)}\n`)
  }
}

/** Returns a function that checks a Workspace in this process. It can be called repeatedly. */
export async function loadTypeChecker(
  directory: string,
): Promise<(request: TypeCheckRequest) => TypeCheckResult> {
  const installed = installedCompiler(directory)
  const native = installed !== null && 'executable' in installed ? installed : null
  const compiler = installed !== null && 'api' in installed ? installed : await embeddedCompiler()
  const checked = new CheckedProgram(compiler, directory)
  const origin = installed === null ? 'embedded' : 'installed'
  return ({ files, functions }) => {
    const roots = files.map((file) => join(directory, file))
    const { program, diagnostics } = checked.check(roots)
    const of = { api: compiler.api, program, directory }
    const problems =
      native === null
        ? diagnostics.map((each) => problemOf(compiler, each, directory))
        : nativeProblems(native, roots, directory)
    const mistakes = certainMistakes(of, functions)
    const { version } = native === null ? compiler.api : { version: '7 or newer' }
    return { problems: merged(problems, mistakes), compiler: `${version}, ${origin}` }
  }
}

/** Removes the consequences of an error on the same line, such as a type that is not inferred. */
function merged(problems: readonly Problem[], mistakes: readonly Problem[]): readonly Problem[] {
  const at = ({ file, line }: Problem) => `${file}:${line}`
  const named = new Set<string>()
  const kept = problems.filter((each) => {
    const follows = named.has(at(each)) && each.message.includes("type 'never'")
    named.add(at(each))
    return !follows
  })
  return [...kept, ...mistakes.filter((each) => !named.has(at(each)))]
}

function problemOf(
  { api }: Compiler,
  { file, start, messageText }: ts.Diagnostic,
  directory: string,
): Problem {
  const text = api.flattenDiagnosticMessageText(messageText, '\n')
  if (file === undefined || start === undefined) {
    return { file: 'tsconfig.json', line: null, column: null, ...explain(text, '') }
  }
  const { line, character } = file.getLineAndCharacterOfPosition(start)
  const location = { line: line + 1, column: character + 1 }
  return located(relative(directory, file.fileName), file.text, location, text)
}

function located(
  file: string,
  text: string,
  { line, column }: { readonly line: number; readonly column: number },
  message: string,
): Problem {
  const lines = text.split('\n')
  const before = [...lines.slice(0, line - 1), lines[line - 1]?.slice(0, column - 1)].join('\n')
  const name = file.replaceAll('\\', '/')
  const frame = codeFrame(text, line, column)
  return { file: name, line, column, ...explain(message, before), frame }
}

const NATIVE_LINE = /^(.+)\((\d+),(\d+)\): error TS\d+: (.*)$/

/** Runs a compiler without a JavaScript API with the options of the Workspace. */
function nativeProblems(
  { executable }: NativeCompiler,
  roots: readonly string[],
  directory: string,
): Problem[] {
  const folder = mkdtempSync(join(tmpdir(), 'svc-types-'))
  try {
    const written = join(directory, 'tsconfig.json')
    const config = existsSync(written)
      ? { extends: written, compilerOptions: FORCED_OPTIONS }
      : { compilerOptions: { ...DEFAULT_OPTIONS, ...FORCED_OPTIONS, paths: pathsOf(directory) } }
    const project = join(folder, 'tsconfig.json')
    writeFileSync(project, JSON.stringify({ ...config, files: roots, include: [], references: [] }))
    const { stdout, status, error } = spawnSync(executable, ['-p', project, '--pretty', 'false'], {
      cwd: directory,
      encoding: 'utf8',
    })
    if (error !== undefined) throw error
    const problems = parseNative(stdout, directory)
    assert(status === 0 || problems.length > 0, stdout)
    return problems
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function pathsOf(directory: string) {
  return { svc: [join(directory, '_generated/svc.d.ts')] }
}

function parseNative(output: string, directory: string): Problem[] {
  const problems: Problem[] = []
  const messages: { file: string; line: number; column: number; text: string }[] = []
  for (const row of output.split('\n')) {
    const [, file, line, column, text = ''] = NATIVE_LINE.exec(row) ?? []
    if (file !== undefined)
      messages.push({ file, line: Number(line), column: Number(column), text })
    else if (/^\s+\S/.test(row) && messages.length > 0) messages.at(-1)!.text += `\n${row}`
    else if (row.startsWith('error ')) {
      problems.push({ file: 'tsconfig.json', line: null, column: null, message: row, fix: null })
    }
  }
  for (const { file, text, ...location } of messages) {
    const source = readFileSync(join(directory, file), 'utf8')
    problems.push(located(file, source, location, text))
  }
  return problems
}
