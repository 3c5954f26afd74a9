/**
 * Shell samples whose commands are parsed and not run. A sample of shell that no test runs and that
 * stands neither here nor in the registry fails `build/samples/samples.test.ts`.
 */
import type { ExemptSamples } from './registry.ts'

const DOCS = 'src/docs'
const UPGRADES =
  'It replaces the executables of this machine by a signed release; ' +
  'e2e/upgrades/executables.test.ts upgrades copies.'

export const PARSED: readonly ExemptSamples[] = [
  {
    of: 'README.md#two-commands 1',
    reason: 'The first builds and serves until it is stopped; the second is the run of the tests.',
  },
  {
    of: 'README.md#working-on-svc 1',
    reason: 'Scripts of this project that take minutes, and of which some run the tests.',
  },
  { of: `${DOCS}/cli.md#svc-upgrade 2`, reason: UPGRADES },
  { of: `${DOCS}/upgrade.md#with-one-command 1`, reason: UPGRADES },
  {
    of: `${DOCS}/upgrade.md#back 1`,
    reason: 'It needs a backup of an earlier version; e2e/upgrades restores one.',
  },
  {
    of: `${DOCS}/dev.md#a-page-for-the-workspace 1`,
    reason: 'Packages of the page come from a registry; e2e/chat serves the page.',
  },
  {
    of: `${DOCS}/dev.md#variables-and-secrets 1`,
    reason: 'A file of variables, and no commands; tests of src/dev/configuration read such files.',
  },
  {
    of: `${DOCS}/importing.md#realtime-database 1`,
    reason: 'It needs an export of the database that it names; e2e/imports converts another one.',
  },
  {
    of: `${DOCS}/origin.md#building-it-again 1`,
    reason: 'It builds a published release again; build/origin verifies one of its own.',
  },
  ...['tls-without-a-proxy 1', 'a-certificate-by-acme 1'].map((place) => ({
    of: `${DOCS}/proxies.md#${place}`,
    reason: 'Assignments alone, of ports that only a superuser opens; their names are checked.',
  })),
]
