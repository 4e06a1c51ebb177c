/* The STREAM triad, a[i] = b[i] + 3 c[i], on all processors: the best of ten rounds. Usage: stream [MIB], the size of each array. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 10 };

static double *a, *b, *c;
static size_t elements;
static int threads;
static pthread_barrier_t all;
static double best = 1e9;
static size_t wrong;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *work(void *which) {
  const size_t rank = (size_t)which;
  const size_t begin = elements * rank / (size_t)threads, end = elements * (rank + 1) / (size_t)threads;
  /* Who works on a page touches it first, so that it is in memory near this processor. */
  for (size_t i = begin; i < end; i++) a[i] = 0, b[i] = 1, c[i] = 2;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&all);
    const double start = now();
    for (size_t i = begin; i < end; i++) a[i] = b[i] + 3 * c[i];
    pthread_barrier_wait(&all);
    const double took = now() - start;
    if (rank == 0 && took < best) best = took;
  }
  size_t mine = 0;
  for (size_t i = begin; i < end; i++) mine += a[i] != 7;
  pthread_mutex_lock(&counting);
  wrong += mine;
  pthread_mutex_unlock(&counting);
  return NULL;
}

int main(int argc, char **argv) {
  const long mib = argc > 1 ? atol(argv[1]) : 256;
  cpu_set_t usable;
  if (mib < 1 || sched_getaffinity(0, sizeof usable, &usable) != 0) return 2;
  threads = CPU_COUNT(&usable);
  elements = (size_t)mib * (1u << 20) / sizeof *a;
  a = malloc(elements * sizeof *a), b = malloc(elements * sizeof *b), c = malloc(elements * sizeof *c);
  pthread_t *others = calloc((size_t)threads, sizeof *others);
  if (!a || !b || !c || !others || pthread_barrier_init(&all, NULL, (unsigned)threads) != 0) {
    fprintf(stderr, "no memory for three arrays of %ld MiB\n", mib);
    return 1;
  }
  for (int rank = 1; rank < threads; rank++)
    if (pthread_create(&others[rank], NULL, work, (void *)(size_t)rank) != 0) return 1;
  work((void *)0);
  for (int rank = 1; rank < threads; rank++) pthread_join(others[rank], NULL);
  printf("Triad: %.1f MB/s with %d threads\n", 24e-6 * (double)elements / best, threads);
  puts(wrong ? "Solution is wrong" : "Solution validates");
  return wrong != 0;
}
