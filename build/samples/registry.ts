/**
 * The tests that run samples of the documents, and the samples that no test runs. A sample that is
 * neither listed here nor checked whole by its language fails `build/samples/samples.test.ts`.
 */

export interface Coverage {
  /** A place, or a document; see `Sample.place`. */
  readonly of: string
  /** Selects the samples of one language; absent for all. */
  readonly language?: string
}

export interface TestedSamples extends Coverage {
  /** The test that runs the samples. */
  readonly test: string
  /** The module that reads the document for the test; absent if the test does. */
  readonly reader?: string
  /** A word of that module by which it finds the samples; the name of the document by default. */
  readonly word?: string
}

export interface ExemptSamples extends Coverage {
  /** The reason why no test can run or check them. */
  readonly reason: string
}

const DOCS = 'src/docs'

export const TESTED: readonly TestedSamples[] = [
  {
    of: 'README.md#the-first-ten-minutes-on-a-server 1',
    test: 'e2e/shipped/readme.test.ts',
  },
  { of: 'README.md#what-a-function-looks-like 2', test: 'e2e/shipped/readme.test.ts' },
  { of: `${DOCS}/calls.md#plain-calls 1`, test: 'e2e/shipped/readme.test.ts' },
  {
    of: `${DOCS}/calls.md#calls-how-an-application-calls-functions 1`,
    test: 'e2e/shipped/readme.test.ts',
  },
  { of: 'README.md', language: 'ts', test: 'build/docs.test.ts' },
  { of: `${DOCS}/containers.md#docker-compose 3`, test: 'e2e/shipped/compose.long.test.ts' },
  { of: `${DOCS}/documents.md`, language: 'ts', test: 'build/documents-guide.test.ts' },
  { of: `${DOCS}/endpoints.md`, language: 'ts', test: 'build/endpoints-guide.test.ts' },
  { of: `${DOCS}/hooks.md`, language: 'ts', test: 'build/hooks-guide.test.ts' },
  {
    of: `${DOCS}/identity.md`,
    language: 'json',
    test: 'build/docs.test.ts',
    word: 'SERVICE_PRODUCT_AUTH_CONFIG',
  },
  {
    of: `${DOCS}/operators.md`,
    language: 'json',
    test: 'build/docs.test.ts',
    word: 'SERVICE_PLATFORM_OIDC_CONFIG',
  },
  { of: `${DOCS}/ci.md`, language: 'json', test: 'build/ci-guide.test.ts' },
  { of: `${DOCS}/ci.md`, language: 'yaml', test: 'build/ci-guide.test.ts' },
  { of: `${DOCS}/realtime.md`, language: 'plain', test: 'src/wire/realtime.test.ts' },
  {
    of: `${DOCS}/testing.md#tests-of-functions 1`,
    test: 'src/dev/testing/vitest.long.test.ts',
    reader: 'testing/test-kit/guides.ts',
  },
  {
    of: `${DOCS}/testing.md#tests-of-functions 2`,
    test: 'src/dev/testing/runners.test.ts',
    reader: 'testing/test-kit/guides.ts',
  },
  {
    of: `${DOCS}/testing.md#tests-of-functions 3`,
    test: 'src/dev/testing/runners.test.ts',
    reader: 'testing/test-kit/guides.ts',
  },
  ...[
    '1-add-a-field-that-some-documents-have 1',
    '2-add-a-field-that-every-document-has 1',
    '3-remove-a-field 1',
    '4-rename-a-field 1',
    '5-add-a-choice 1',
    '7-change-a-type 1',
    '9-change-an-object 1',
  ].map((place) => ({
    of: `${DOCS}/schema-changes.md#${place}`,
    test: 'build/schema-changes-guide.test.ts',
  })),
  ...['backup.md', 'disaster.md', 'moving.md'].map((name) => ({
    of: `${DOCS}/${name}`,
    language: 'sh',
    test: 'e2e/backups/guides.test.ts',
  })),
]

export const EXEMPT: readonly ExemptSamples[] = [
  {
    of: `${DOCS}/cli.md`,
    language: 'text',
    reason: 'The help texts are generated from the table of commands; a test compares them.',
  },
  {
    of: `${DOCS}/contract/wire.md`,
    language: 'ts',
    reason: 'A notation of messages, in which `prj_*` is any Project ID. src/wire has the schemas.',
  },
  {
    of: `${DOCS}/contract/wire.md#upgrade-check 1`,
    reason: 'The same notation. src/wire has the schema.',
  },
  {
    of: `${DOCS}/contract/wire.md#restore-and-verification-of-backups 1`,
    reason: 'The form of two commands, with alternatives and ellipses.',
  },
  {
    of: `${DOCS}/backup.md#documents-that-lack-acknowledged-changes 1`,
    reason: 'A message of the server, whose code e2e tests of a root that lacks commits expect.',
  },
  {
    of: `${DOCS}/backups-format.md#files 1`,
    reason: 'The layout of keys in a target, with names in braces.',
  },
  {
    of: `${DOCS}/backups-format.md#files 2`,
    reason: 'age and zstd are programs of others; the format is tested with their libraries.',
  },
  {
    of: `${DOCS}/operations.md#packages 2`,
    reason: 'It changes the keys of the machine; e2e/shipped verifies RPMs with keys of their own.',
  },
  {
    of: `${DOCS}/containers.md#the-image 1`,
    reason: 'It needs a daemon of containers and the archive of a release.',
  },
  {
    of: `${DOCS}/containers.md#kubernetes 1`,
    reason: 'It needs a cluster of Kubernetes; build/packages checks the manifests.',
  },
  {
    of: `${DOCS}/importing.md#release-store-import 1`,
    reason: 'The sequence that e2e/imports runs, with the names of another export.',
  },
  {
    of: `${DOCS}/importing.md#convex 1`,
    reason: 'A program of another product makes the export; e2e/imports runs the rest.',
  },
  {
    of: `${DOCS}/importing.md#parse 1`,
    reason: 'It needs a server of another product; e2e/imports runs the rest.',
  },
  {
    of: `${DOCS}/importing.md#firebase 1`,
    reason: 'Programs of another product make the exports; e2e/imports runs the rest.',
  },
  {
    of: `${DOCS}/operations.md#packages 1`,
    reason: 'It changes the machine; e2e/shipped/installed-packages.long.test.ts installs them.',
  },
  ...[
    'setup-one-command-for-a-server 1',
    'setup-one-command-for-a-server 2',
    'without-a-service-manager 1',
  ].map((place) => ({
    of: `${DOCS}/setup.md#${place}`,
    reason: 'They change the machine; e2e/shipped/setup.long.test.ts runs them in its own roots.',
  })),
  ...['by-hand 1', 'by-hand 2', 'provenance 1'].map((place) => ({
    of: `${DOCS}/origin.md#${place}`,
    reason: 'Programs of others at a published release; tests of build/origin run them at another.',
  })),
  ...['on-macos 1', 'on-macos 2'].map((place) => ({
    of: `${DOCS}/setup.md#${place}`,
    reason: 'Commands of macOS and its launchd.',
  })),
  {
    of: `${DOCS}/operations.md#plan-the-disk 1`,
    reason: 'A maintenance statement for a store in PostgreSQL, in the syntax of PostgreSQL.',
  },
  {
    of: `${DOCS}/proxies.md#connections-of-strangers 1`,
    reason: 'Rules of a firewall, which a test could load only into the network of the machine.',
  },
  {
    of: `${DOCS}/s3.md`,
    language: 'text',
    reason: 'Programs of others; e2e/files/s3-programs.long.test.ts runs them at a bucket.',
  },
  {
    of: `${DOCS}/traces.md#show-traces-with-jaeger 1`,
    reason: 'It needs a daemon of containers and the image of another project.',
  },
  {
    of: `${DOCS}/traces.md#show-traces-with-jaeger 2`,
    reason: 'A part of the settings of another project.',
  },
]
