/** Explains errors that a bundle throws while it is loaded, at the line in the Workspace. */
import { isFault } from '../../errors/fault.ts'
import { fileProblem, type Problem, workspaceFault } from '../workspace/problems.ts'
import { MIGRATIONS_FILE, SCHEMA_FILE } from '../workspace/workspace-files.ts'
import type { Bundle } from './bundles.ts'
import { type SourceLocation, SourceMap, type SourceMapJson } from './source-maps.ts'

const FRAME = /(?:^|[\s(@])([^\s()@]+):(\d+):(\d+)\)?\s*$/

/** Returns WORKSPACE_INVALID if the code caused the failure, otherwise the failure itself. */
export function loadFailure(error: unknown, bundle: Bundle): unknown {
  if (isFault(error, 'DEADLINE_EXCEEDED', 'LIMIT_EXCEEDED')) {
    const limit = error.detail ?? 'time'
    const message = `Loading the Workspace exceeded a limit (${limit}).`
    const fix = 'Do less outside of handlers.'
    return workspaceFault([fileProblem('functions', message, fix)], error)
  }
  if (!isFault(error, 'FUNCTION_FAILED')) return error
  return workspaceFault([problemOf(error.detail ?? '', bundle)], error)
}

function problemOf(detail: string, bundle: Bundle): Problem {
  const lines = detail.split('\n')
  const json = JSON.parse(bundle.sourceMap) as SourceMapJson
  const map = new SourceMap(json)
  const locations = lines
    .flatMap((line) => locationOf(line, json.sources, map))
    .filter(isInWorkspace)
  const location = locations.find(({ file }) => !file.startsWith('node_modules/')) ?? locations[0]
  const text = lines.filter((line) => line.trim() !== '' && !FRAME.test(line)).join('\n')
  const message = text.replace(/^DefinitionError: /, '') || 'The code failed while it was loaded.'
  const named = [SCHEMA_FILE, MIGRATIONS_FILE].find((file) => message.includes(file))
  return {
    file: location?.file ?? named ?? 'functions',
    line: location?.line ?? null,
    column: location?.column ?? null,
    message,
    fix: null,
  }
}

/** Returns whether a location is outside of the SDK and the generated entry. */
function isInWorkspace({ file }: SourceLocation): boolean {
  return file !== 'svc' && !file.startsWith('svc:')
}

/** Parses a stack frame, which is a location in a source or in the bundle. */
function locationOf(frame: string, sources: readonly string[], map: SourceMap): SourceLocation[] {
  const match = FRAME.exec(frame)
  if (match === null) return []
  const [file, line, column] = [match[1]!, Number(match[2]), Number(match[3])]
  if (sources.includes(file)) return [{ file, line, column }]
  const location = map.find(line, column)
  return location === null ? [] : [location]
}
