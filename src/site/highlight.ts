/** Colours code of the languages that the documents have; other code stays plain text. */
import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import ini from 'highlight.js/lib/languages/ini'
import json from 'highlight.js/lib/languages/json'
import sql from 'highlight.js/lib/languages/sql'
import typescript from 'highlight.js/lib/languages/typescript'
import yaml from 'highlight.js/lib/languages/yaml'
import { escapeHtml } from './escape.ts'

const GRAMMARS = { bash, ini, json, sql, typescript, yaml }
for (const [name, grammar] of Object.entries(GRAMMARS)) hljs.registerLanguage(name, grammar)

/** The grammar of each language of a fence. */
const LANGUAGES: Readonly<Record<string, keyof typeof GRAMMARS>> = {
  ini: 'ini',
  js: 'typescript',
  json: 'json',
  sh: 'bash',
  sql: 'sql',
  ts: 'typescript',
  tsx: 'typescript',
  yaml: 'yaml',
}

/** Returns code as HTML. */
export function highlighted(code: string, fence: string): string {
  const language = Object.hasOwn(LANGUAGES, fence) ? LANGUAGES[fence] : undefined
  if (language === undefined) return escapeHtml(code)
  return hljs.highlight(code, { language, ignoreIllegals: true }).value
}
