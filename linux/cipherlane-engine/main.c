// SPDX-License-Identifier: GPL-2.0
/* The PCI device: probe, removal, parameters. */
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/log2.h>
#include <linux/module.h>

#include "engine.h"

/* The device that serves; NULL if there is none. */
struct cle_device __rcu *cle_active;
static DEFINE_MUTEX(cle_mutex);

bool cle_enabled = true;
module_param_named(enabled, cle_enabled, bool, 0644);
MODULE_PARM_DESC(enabled, "whether the engine is used; can be changed at any time (default Y)");

int cle_threshold = -1;
module_param_named(threshold, cle_threshold, int, 0644);
MODULE_PARM_DESC(threshold,
		 "bytes from which on requests go to the engine; -1: by measured cost (default)");

bool cle_bounce_output;
module_param_named(bounce_output, cle_bounce_output, bool, 0644);
MODULE_PARM_DESC(bounce_output,
		 "never give the engine a caller's memory to write (default N)");

unsigned int cle_timeout_ms = 500;
module_param_named(timeout_ms, cle_timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "milliseconds without an answer until a reset (default 500)");

unsigned int cle_reset_ms = 50;
module_param_named(reset_ms, cle_reset_ms, uint, 0644);
MODULE_PARM_DESC(reset_ms, "milliseconds for the engine to answer a reset (default 50)");

unsigned int cle_priority = 300;
module_param_named(priority, cle_priority, uint, 0444);
MODULE_PARM_DESC(priority, "of the algorithms in the CryptoAPI (default 300)");

static unsigned int depth = 64;
module_param(depth, uint, 0444);
MODULE_PARM_DESC(depth, "requests in the engine at most (default 64)");

static unsigned int bounce_kib = 64;
module_param(bounce_kib, uint, 0444);
MODULE_PARM_DESC(bounce_kib, "memory for copies of a request (default 64)");

/* The device may write its registers at any time: each is read once, and checked. */
static int cle_read_rules(struct cle_device *dev, resource_size_t len)
{
	struct device *parent = &dev->pdev->dev;
	u32 unit;

	if (readq(dev->bar + CLE_REG_MAGIC) != CLE_MAGIC)
		return -ENODEV;		/* another use of ivshmem */
	dev->features = readq(dev->bar + CLE_REG_FEATURES);
	dev->ring = readl(dev->bar + CLE_REG_RING);
	dev->alignment = readl(dev->bar + CLE_REG_ALIGNMENT);
	dev->block = readl(dev->bar + CLE_REG_BLOCK);
	dev->segment = readl(dev->bar + CLE_REG_MAX_SEGMENT);
	dev->max_request = readl(dev->bar + CLE_REG_MAX_REQUEST);
	dev->sessions = min(readl(dev->bar + CLE_REG_SESSIONS), 65536U);
	dev->key_bits = readl(dev->bar + CLE_REG_KEY_BITS);
	if (!is_power_of_2(dev->ring) || dev->ring < 8 || dev->ring > CLE_RING_MAX ||
	    CLE_REGISTERS + 2 * dev->ring * CLE_ENTRY + dev->ring / 2 * CLE_SLOT > len ||
	    !is_power_of_2(dev->alignment) || dev->alignment > PAGE_SIZE ||
	    !dev->block || dev->block > PAGE_SIZE || !dev->sessions) {
		dev_err(parent, "the device's rules make no sense\n");
		return -EINVAL;
	}
	/* Pieces that are cut by the driver end where the next may begin. */
	unit = max3(dev->alignment, dev->block, (u32)AES_BLOCK_SIZE);
	if (unit % dev->alignment || unit % dev->block)
		unit = dev->alignment * dev->block;
	dev->segment = min(dev->segment, 1U << 30) / unit * unit;
	if (!dev->segment) {
		dev_err(parent, "the device's pieces are too short\n");
		return -EINVAL;
	}
	return 0;
}

static int cle_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct device *parent = &pdev->dev;
	struct cle_device *dev;
	int ret;

	dev = devm_kzalloc(parent, sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->pdev = pdev;
	pci_set_drvdata(pdev, dev);
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	if (pci_resource_len(pdev, 0) < 16 || pci_resource_len(pdev, 2) < CLE_REGISTERS)
		return -ENODEV;
	ret = pcim_iomap_regions(pdev, BIT(0) | BIT(2), CLE_NAME);
	if (ret)
		return ret;
	dev->doorbell = pcim_iomap_table(pdev)[0] + CLE_DOORBELL;
	dev->bar = pcim_iomap_table(pdev)[2];
	ret = cle_read_rules(dev, pci_resource_len(pdev, 2));
	if (ret)
		return ret;
	/* The highest bit tells addresses of the bus from offsets in the BAR. */
	ret = dma_set_mask_and_coherent(parent, DMA_BIT_MASK(62));
	if (ret)
		return ret;
	ret = cle_ring_init(dev, clamp(depth, 2U, dev->ring / 4),
			    clamp(bounce_kib, 4U, 1024U) << 10);
	if (ret)
		return ret;

	pci_set_master(pdev);
	ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	if (ret < 0)
		goto err_master;
	dev->irq = pci_irq_vector(pdev, 0);
	ret = request_irq(dev->irq, cle_interrupt, 0, CLE_NAME, dev);
	if (ret)
		goto err_vectors;
	ret = cle_ring_reset(dev);
	if (ret) {
		dev_err(parent, "the device does not answer a reset\n");
		goto err_irq;
	}

	mutex_lock(&cle_mutex);
	if (rcu_access_pointer(cle_active)) {
		mutex_unlock(&cle_mutex);
		dev_err(parent, "there is another engine, and one is served\n");
		ret = -EBUSY;
		goto err_irq;
	}
	rcu_assign_pointer(cle_active, dev);
	ret = cle_register_algs(dev);
	mutex_unlock(&cle_mutex);
	if (ret) {
		rcu_assign_pointer(cle_active, NULL);
		synchronize_rcu();
		goto err_irq;
	}
	dev_info(parent, "engine with %u requests of %u bytes at most\n", dev->depth,
		 dev->max_request);
	return 0;

err_irq:
	cle_ring_stop(dev);
	free_irq(dev->irq, dev);
	tasklet_kill(&dev->tasklet);
err_vectors:
	pci_free_irq_vectors(pdev);
err_master:
	pci_clear_master(pdev);
	destroy_workqueue(dev->workqueue);
	return ret;
}

static void cle_remove(struct pci_dev *pdev)
{
	struct cle_device *dev = pci_get_drvdata(pdev);

	mutex_lock(&cle_mutex);
	rcu_assign_pointer(cle_active, NULL);
	mutex_unlock(&cle_mutex);
	/* From here on nobody gives it anything. */
	synchronize_rcu();
	cle_ring_stop(dev);
	free_irq(dev->irq, dev);
	tasklet_kill(&dev->tasklet);
	pci_free_irq_vectors(pdev);
	pci_clear_master(pdev);
	destroy_workqueue(dev->workqueue);
}

static const struct pci_device_id cle_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110) },	/* ivshmem */
	{ }
};
MODULE_DEVICE_TABLE(pci, cle_ids);

static struct pci_driver cle_driver = {
	.name = CLE_NAME,
	.id_table = cle_ids,
	.probe = cle_probe,
	.remove = cle_remove,
};

static int __init cle_init(void)
{
	int ret;

	cle_stats_init();
	ret = pci_register_driver(&cle_driver);
	if (ret)
		cle_stats_exit();
	return ret;
}

static void __exit cle_exit(void)
{
	pci_unregister_driver(&cle_driver);
	cle_unregister_algs();
	cle_stats_exit();
}

module_init(cle_init);
module_exit(cle_exit);
MODULE_DESCRIPTION("Cipherlane: crypto engine with descriptor rings");
MODULE_AUTHOR("Cipherlane");
MODULE_LICENSE("GPL");
MODULE_ALIAS_CRYPTO("cbc-aes-cipherlane");
