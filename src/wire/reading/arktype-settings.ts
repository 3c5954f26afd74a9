/**
 * Settings of arktype for every schema. arktype reads them while it loads, so import this module
 * first. Objects reject undeclared fields. Types are compiled by read.ts on demand, which halves
 * the load time of arktype.
 */
import { configure } from 'arktype/config'
import { isRule } from '../rules.ts'

configure({
  onUndeclaredKey: 'reject',
  jitless: true,
  maxLength: { description: ({ rule }) => `at most ${rule} entries` },
  predicate: { description: ({ predicate }) => (isRule(predicate) ? predicate.expected : 'valid') },
})
